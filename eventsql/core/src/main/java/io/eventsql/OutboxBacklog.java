package io.eventsql;

import java.time.Duration;
import javax.sql.DataSource;

/**
 * What waits in one outbox, on its way to other databases included.
 *
 * @param database where the outbox is
 * @param events committed events that are not in their streams yet; {@value #COUNTED_MAX}: so many or more
 * @param refusedEvents events that can never be appended, kept in the table {@code outbox_refused} with the reason; counted
 *     like {@code events}
 * @param oldestAge how long ago the oldest one that waits was written, by the database's clock; zero if none waits
 */
public record OutboxBacklog(DataSource database, int events, int refusedEvents, Duration oldestAge) {
    /** Counting goes no further. */
    public static final int COUNTED_MAX = 10_000;
}
