package io.eventsql;

import java.time.Duration;
import javax.sql.DataSource;

/**
 * Committed events of one outbox that are not in their streams yet, including those in transfer to other databases.
 *
 * @param database where the outbox is
 * @param events the number of waiting events; {@value #COUNTED_MAX} means at least that many
 * @param refusedEvents the number of events that cannot be appended, kept in the table {@code outbox_refused} with the
 *     reason until they are retried ({@code docs/outbox.md}); counted up to the same limit
 * @param oldestAge the time since the oldest waiting event was written, by the database's clock; zero if none waits
 */
public record OutboxBacklog(DataSource database, int events, int refusedEvents, Duration oldestAge) {
    /** The limit of both counts: further events are not counted. */
    public static final int COUNTED_MAX = 10_000;
}
