package io.eventsql.spring.internal.observation;

import io.eventsql.EventSqlException;
import java.time.Duration;
import java.util.concurrent.Executor;
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
    /** Number of intervals after which the last reading is stale because the next read has not ended. */
    private static final int INTERVALS_UNTIL_STALE = 4;
    /** Upper bound on the age of a reading, which is as old as the previous query: that one started the read. */
    private static final long STALE_NANOS = Duration.ofMinutes(10).toNanos();

    private final String name;
    private final long intervalNanos;
    private final Supplier<T> source;
    private final LongSupplier nanoTime;
    private final Executor threads;

    private boolean reading;
    private long startedAt;
    private @Nullable T last;
    private long lastAt;

    /**
     * @param name what is read, for the thread and messages
     * @param source reads; throws {@link EventSqlException} if the database is unavailable
     */
    Readings(String name, Duration interval, Supplier<T> source) {
        this(name, interval, source, System::nanoTime, threads(name));
    }

    /**
     * @param nanoTime {@link System#nanoTime()}, except in tests
     * @param threads starts a thread for each read
     */
    Readings(String name, Duration interval, Supplier<T> source, LongSupplier nanoTime, Executor threads) {
        this.name = name;
        this.intervalNanos = interval.toNanos();
        this.source = source;
        this.nanoTime = nanoTime;
        this.threads = threads;
        this.startedAt = nanoTime.getAsLong() - intervalNanos;
    }

    private static Executor threads(String name) {
        Thread.Builder thread = Thread.ofPlatform().daemon().name("eventsql-meters-" + name);
        return thread::start;
    }

    /** Returns a number of the last reading; not a number if it failed or is stale. */
    synchronized double get(ToDoubleFunction<T> number) {
        refresh();
        @Nullable T current = last;
        return current == null || isStale() ? Double.NaN : number.applyAsDouble(current);
    }

    private boolean isStale() {
        long now = nanoTime.getAsLong();
        return now - lastAt > STALE_NANOS || (reading && now - startedAt > INTERVALS_UNTIL_STALE * intervalNanos);
    }

    /** Starts to read if the interval has elapsed. */
    synchronized void refresh() {
        long now = nanoTime.getAsLong();
        if (reading || now - startedAt < intervalNanos) {
            return;
        }
        reading = true;
        try {
            threads.execute(this::read);
            startedAt = now;
        } catch (RuntimeException | Error e) { // a thread cannot be started for lack of memory: the next query retries
            reading = false;
            throw e;
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
