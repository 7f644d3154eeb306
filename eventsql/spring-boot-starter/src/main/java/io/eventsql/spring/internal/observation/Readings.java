package io.eventsql.spring.internal.observation;

import io.eventsql.EventSqlException;
import java.time.Duration;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a database contained when it was last read. Querying a value starts a read on a separate thread, at most once in each
 * interval and never two concurrently, so that no caller waits for a database. Thread-safe.
 */
final class Readings<T> {
    private static final Logger LOG = LoggerFactory.getLogger(Readings.class);
    /** Number of intervals after which a reading is stale. */
    private static final int INTERVALS_UNTIL_STALE = 4;

    private final String name;
    private final long intervalNanos;
    private final Supplier<T> source;
    private final LongSupplier nanoTime;

    private boolean reading;
    private long startedAt;
    private @Nullable T last;
    private long lastAt;

    /**
     * @param name what is read, for the thread and messages
     * @param source reads; throws {@link EventSqlException} if the database is unavailable
     */
    Readings(String name, Duration interval, Supplier<T> source) {
        this(name, interval, source, System::nanoTime);
    }

    /** @param nanoTime {@link System#nanoTime()}, except in tests */
    Readings(String name, Duration interval, Supplier<T> source, LongSupplier nanoTime) {
        this.name = name;
        this.intervalNanos = interval.toNanos();
        this.source = source;
        this.nanoTime = nanoTime;
        this.startedAt = nanoTime.getAsLong() - intervalNanos;
    }

    /** Returns a number of the last reading; not a number if it is stale. */
    synchronized double get(ToDoubleFunction<T> number) {
        refresh();
        boolean recent = last != null && nanoTime.getAsLong() - lastAt <= INTERVALS_UNTIL_STALE * intervalNanos;
        return recent && last != null ? number.applyAsDouble(last) : Double.NaN;
    }

    /** Starts to read if the interval has elapsed. */
    synchronized void refresh() {
        long now = nanoTime.getAsLong();
        if (!reading && now - startedAt >= intervalNanos) {
            reading = true;
            startedAt = now;
            Thread.ofPlatform().daemon().name("eventsql-meters-" + name).start(this::read);
        }
    }

    private void read() {
        @Nullable T read = null;
        try {
            read = source.get();
        } catch (EventSqlException e) {
            LOG.debug("Reading the {} for meters failed; the next scrape retries", name, e);
        } finally { // whatever a data source throws
            done(read);
        }
    }

    private synchronized void done(@Nullable T read) {
        reading = false;
        last = read;
        lastAt = nanoTime.getAsLong();
    }
}
