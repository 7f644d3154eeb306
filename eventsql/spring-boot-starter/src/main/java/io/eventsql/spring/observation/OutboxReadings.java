package io.eventsql.spring.observation;

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
 * What one outbox had when it was last read. Reading is started by whoever asks, at most once in each interval and never
 * twice at the same time, on a thread of its own: nobody waits for a database. Thread-safe.
 */
final class OutboxReadings {
    private static final Logger LOG = LoggerFactory.getLogger(OutboxReadings.class);
    /** So many intervals later a reading says nothing about now. */
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

    /** A number of the last reading; not a number if there is none that is recent. */
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
            LOG.debug("The backlog of {} could not be read", name, e);
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
