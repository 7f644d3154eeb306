package io.eventsql;

/** How a stream keeps its events in the tables of the database. Chosen when the stream is created; cannot be changed. */
public enum Storage {
    /** Each event is a row. */
    ROWS,
    /**
     * A row holds a block: events of one partition that were appended together, up to about 8 kB; a larger event is alone in
     * its row. Storing, writing ahead (WAL) and fetching cost far less per event where batches are large. The stream's table is
     * a view with a row for each event: a condition on {@code event_offset} there reads every block, unlike the function
     * {@code event_range_v1}. With compaction, a block keeps the events that are left, and is not merged with others.
     */
    BLOCKS
}
