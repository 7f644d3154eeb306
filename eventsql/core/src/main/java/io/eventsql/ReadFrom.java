package io.eventsql;

/** Which server events are read from. */
public enum ReadFrom {
    /** The primary server of the shard: every acknowledged event can be read. */
    PRIMARY,
    /**
     * The shard's replica ({@link EventSqlBuilder#replica}), which may lack the newest events. The primary, if the shard has
     * none, or if it is further behind than {@link Settings#maxReplicaLag()}. Offsets are stored on the primary in any case.
     */
    REPLICA
}
