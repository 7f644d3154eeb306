package io.eventsql.spring.internal.observation;

import io.eventsql.EventSqlException;
import io.eventsql.Outbox;
import io.eventsql.OutboxBacklog;
import java.time.Duration;
import java.util.function.LongSupplier;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The backlog of one outbox when it was last read. Querying a value starts a read on a separate thread, at most once in each
 * interval and never two concurrently, so that no caller waits for a database. Thread-safe.
 */
final class OutboxReadings {
    private static final Logger LOG = LoggerFactory.getLogger(OutboxReadings.class);
    /** Number of intervals after which a reading is stale. */
    private static final int INTERVALS_UNTIL_STALE = 4;

    private final Outbox outbox;
    private final String name;
    private final long intervalNanos;
    private final LongSupplier nanoTime;

    private boolean reading;
    private long startedAt;
    private @Nullable OutboxBacklog last;
    private long lastAt;

    /** @param nanoTime {@link System#nanoTime()}, except in tests */
    OutboxReadings(Outbox outbox, String name, Duration interval, LongSupplier nanoTime) {
        this.outbox = outbox;
        this.name = name;
        this.intervalNanos = interval.toNanos();
        this.nanoTime = nanoTime;
        this.startedAt = nanoTime.getAsLong() - intervalNanos;
    }

    /** Returns a number of the last reading; not a number if it is stale. */
    synchronized double get(ToDoubleFunction<OutboxBacklog> number) {
        long now = nanoTime.getAsLong();
        if (!reading && now - startedAt >= intervalNanos) {
            reading = true;
            startedAt = now;
            Thread.ofPlatform().daemon().name("eventsql-outbox-meters-" + name).start(this::read);
        }
        boolean recent = last != null && now - lastAt <= INTERVALS_UNTIL_STALE * intervalNanos;
        return recent && last != null ? number.applyAsDouble(last) : Double.NaN;
    }

    private void read() {
        @Nullable OutboxBacklog read = null;
        try {
            read = outbox.backlog(name);
        } catch (EventSqlException e) {
            LOG.debug("Reading the backlog of outbox {} failed; the next scrape retries", name, e);
        } finally { // whatever a data source throws
            done(read);
        }
    }

    private synchronized void done(@Nullable OutboxBacklog read) {
        reading = false;
        last = read;
        lastAt = nanoTime.getAsLong();
    }
}
