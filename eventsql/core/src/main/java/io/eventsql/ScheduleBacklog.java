package io.eventsql;

import java.time.Duration;

/**
 * The scheduled events of one database.
 *
 * @param database the name of the shard, or of the standalone outbox
 * @param events how many events are scheduled: exact up to {@value #COUNTED_MAX}, estimated from the statistics of the tables
 *     above
 * @param overdue for how long the first of them has been due; zero if it is not due yet. More than a moment means that the
 *     database's relay does not keep up, or that no process relays
 */
public record ScheduleBacklog(String database, long events, Duration overdue) {
    /** The limit up to which events are counted. */
    public static final int COUNTED_MAX = 10_000;
}
