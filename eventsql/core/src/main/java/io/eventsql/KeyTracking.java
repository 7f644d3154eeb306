package io.eventsql;

/** What a stream keeps of its keys, in addition to their events; chosen when the stream is created. */
public enum KeyTracking {
    /** Nothing. */
    OFF,
    /**
     * How many events of each key were ever stored, whatever retention, compaction and {@link EventSql#clear} have removed: the
     * key's version, which a publish may expect ({@link ExpectedVersion}). A row for each key, updated by every append; it is
     * deleted with the stream only.
     */
    VERSIONS,
    /**
     * The versions, and an index by key in each segment: {@link EventSql#readKey} reads all events of a key at the cost of
     * these.
     */
    INDEX
}
