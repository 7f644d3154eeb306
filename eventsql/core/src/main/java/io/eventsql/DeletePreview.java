package io.eventsql;

import java.util.List;

/**
 * What {@link EventSql#deleteStream} would delete, as of the time of the preview.
 *
 * @param stream the stream
 * @param shards the stream's contents by shard number; without events where its deletion has begun
 * @param consumers the names of its consumers, whose offsets and parked events are deleted with it
 * @param confirmation the token that {@link EventSql#deleteStream} requires. It is valid for this stream of this cluster until
 *     the stream is deleted, even if more events are published in between; these are deleted, too.
 */
public record DeletePreview(
        String stream, List<ClearPreview.ShardContent> shards, List<String> consumers, String confirmation) {

    public DeletePreview {
        shards = List.copyOf(shards);
        consumers = List.copyOf(consumers);
    }

    /** Returns the number of events on all shards. */
    public long events() {
        return shards.stream().mapToLong(ClearPreview.ShardContent::events).sum();
    }
}
