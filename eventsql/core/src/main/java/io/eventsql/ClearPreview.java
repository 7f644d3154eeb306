package io.eventsql;

import java.util.List;

/**
 * What {@link EventSql#clear} would delete, at the moment it was asked.
 *
 * @param stream the stream
 * @param shards what each shard holds, by number
 * @param confirmation what {@link EventSql#clear} wants to be given: valid for this stream of this cluster until it is
 *     cleared, also while further events are published, which are deleted too
 */
public record ClearPreview(String stream, List<ShardContent> shards, String confirmation) {

    public ClearPreview {
        shards = List.copyOf(shards);
    }

    /**
     * What one shard holds of the stream.
     *
     * @param shard the shard's number
     * @param events the events
     * @param segments the tables that are dropped or emptied
     */
    public record ShardContent(int shard, long events, int segments) {}

    /** The events on all shards. */
    public long events() {
        return shards.stream().mapToLong(ShardContent::events).sum();
    }
}
