package io.eventsql;

import java.util.List;

/**
 * What {@link EventSql#clear} would delete, as of the time of the preview.
 *
 * @param stream the stream
 * @param shards the stream's contents by shard number
 * @param confirmation the token that {@link EventSql#clear} requires. It is valid for this stream of this cluster until
 *     the stream is cleared, even if more events are published in between; these are deleted, too.
 */
public record ClearPreview(String stream, List<ShardContent> shards, String confirmation) {

    public ClearPreview {
        shards = List.copyOf(shards);
    }

    /**
     * The stream's content on one shard.
     *
     * @param shard the shard's number
     * @param events the number of events
     * @param segments the number of segment tables that would be dropped or emptied
     */
    public record ShardContent(int shard, long events, int segments) {}

    /** Returns the number of events on all shards. */
    public long events() {
        return shards.stream().mapToLong(ShardContent::events).sum();
    }
}
