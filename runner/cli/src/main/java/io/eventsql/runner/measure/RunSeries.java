package io.eventsql.runner.measure;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Records a run second by second, starting with the measured phase. Earlier events are ignored. All times are monotonic
 * nanoseconds. Thread-safe.
 */
public final class RunSeries {
    private static final long NANOS_PER_SECOND = 1_000_000_000;
    /** How long a second remains open after its end, for latencies from delayed threads. */
    private static final int SECONDS_OPEN = 3;

    /** The counters of one second. Thread-safe. */
    private static final class Second {
        final LongAdder offered = new LongAdder();
        final LongAdder sent = new LongAdder();
        final LongAdder published = new LongAdder();
        final LongAdder failed = new LongAdder();
        final LongAdder missed = new LongAdder();
        final LongAdder delivered = new LongAdder();
        final SecondLatency publish = new SecondLatency();
        final SecondLatency endToEnd = new SecondLatency();

        void close() {
            publish.close();
            endToEnd.close();
        }
    }

    private record NumberedSecond(int number, Second second) {}

    private record PhaseInterval(String name, long fromNanos, long toNanos) {}

    private final ConcurrentSkipListMap<Integer, Second> seconds = new ConcurrentSkipListMap<>();
    private final List<PhaseInterval> phases = new CopyOnWriteArrayList<>();
    private final int consumers;
    /** The second that was asked for last, which is almost always the one asked for next. */
    private volatile @Nullable NumberedSecond recent;

    private volatile long originNanos = Long.MAX_VALUE;
    private volatile int closedBelow;

    /** @param consumers the number of deliveries per event */
    public RunSeries(int consumers) {
        this.consumers = consumers;
    }

    /** Starts the recording. Only the first call has an effect. */
    public synchronized void start(long nanos) {
        if (!hasStarted()) {
            originNanos = nanos;
        }
    }

    public boolean hasStarted() {
        return originNanos != Long.MAX_VALUE;
    }

    /** Returns the start time, see {@link #start}; {@link Long#MAX_VALUE} before the start. */
    public long originNanos() {
        return originNanos;
    }

    /** Adds a named phase. */
    public void addPhase(String name, long fromNanos, long toNanos) {
        phases.add(new PhaseInterval(name, fromNanos, toNanos));
    }

    public void recordSent(long intendedNanos, long calledNanos, int events) {
        Second intended = secondAt(intendedNanos);
        if (intended != null) {
            intended.offered.add(events);
        }
        Second called = secondAt(calledNanos);
        if (called != null) {
            called.sent.add(events);
        }
    }

    public void recordMissed(long intendedNanos, int events) {
        Second second = secondAt(intendedNanos);
        if (second != null) {
            second.offered.add(events);
            second.missed.add(events);
        }
    }

    public void recordFailed(long atNanos, int events) {
        Second second = secondAt(atNanos);
        if (second != null) {
            second.failed.add(events);
        }
    }

    public void recordAcknowledged(long atNanos, long latencyMicros, int events) {
        Second second = secondAt(atNanos);
        if (second != null) {
            second.published.add(events);
            record(atNanos, of -> of.publish, latency -> latency.record(latencyMicros, events));
        }
    }

    /** Records deliveries of the same time. */
    public void recordDelivered(long atNanos, long[] latenciesMicros, int count) {
        Second second = secondAt(atNanos);
        if (second != null) {
            second.delivered.add(count);
            record(atNanos, of -> of.endToEnd, latency -> latency.record(latenciesMicros, count));
        }
    }

    /** Records in the second of the given time or, if that is closed, in the first open one. */
    private void record(
            long atNanos, Function<Second, SecondLatency> latency, Predicate<SecondLatency> recordUnlessClosed) {
        int number = secondNumber(atNanos);
        while (!recordUnlessClosed.test(latency.apply(getOrCreate(number)))) {
            number = Math.max(number + 1, closedBelow);
        }
    }

    /** Closes elapsed seconds. To be called about once per second. */
    public void closeElapsedSeconds(long nowNanos) {
        if (hasStarted()) {
            int below = secondNumber(nowNanos) - SECONDS_OPEN;
            seconds.subMap(closedBelow, Math.max(closedBelow, below)).values().forEach(Second::close);
            closedBelow = Math.max(closedBelow, below);
        }
    }

    /**
     * Closes all seconds and returns the table. Call it once recording has ended.
     *
     * @param endNanos a time in the last second
     */
    public TimeSeries finish(long endNanos) {
        int count = hasStarted() && endNanos > originNanos ? secondNumber(endNanos - 1) + 1 : 0;
        List<TimeSeries.Row> rows = new ArrayList<>();
        long unanswered = 0;
        long undelivered = 0;
        for (int number = 0; number < count; number++) {
            Second second = getOrCreate(number);
            second.close();
            long published = second.published.sum();
            long failed = second.failed.sum();
            long delivered = second.delivered.sum();
            unanswered += second.sent.sum() - published - failed;
            undelivered += published * consumers - delivered;
            rows.add(new TimeSeries.Row(
                    phaseOf(number),
                    second.offered.sum(),
                    published,
                    consumers == 0 ? null : Long.valueOf(delivered),
                    failed,
                    second.missed.sum(),
                    Math.max(0, unanswered),
                    // Clamped to 0, because a consumer may be faster than the acknowledgement.
                    consumers == 0 ? null : Double.valueOf((double) Math.max(0, undelivered) / consumers),
                    second.publish.percentiles(),
                    second.endToEnd.percentiles()));
        }
        return TimeSeries.of(rows);
    }

    /** Numbers of events since the start. */
    public record Totals(long offered, long published, long failed, long missed) {}

    /** Returns the totals so far. */
    public Totals totals() {
        return new Totals(
                total(second -> second.offered.sum()),
                total(second -> second.published.sum()),
                total(second -> second.failed.sum()),
                total(second -> second.missed.sum()));
    }

    private long total(ToLongFunction<Second> value) {
        return seconds.values().stream().mapToLong(value).sum();
    }

    /** Returns the publish latencies of a second of the table in microseconds; {@code null} if there are none. */
    public @Nullable Histogram publishMicros(int t) {
        return getOrCreate(t).publish.histogram();
    }

    /** Returns the end-to-end latencies of a second of the table in microseconds; {@code null} if there are none. */
    public @Nullable Histogram endToEndMicros(int t) {
        return getOrCreate(t).endToEnd.histogram();
    }

    /** Returns the phase that covers the middle of a second. */
    private @Nullable String phaseOf(int number) {
        long middle = originNanos + number * NANOS_PER_SECOND + NANOS_PER_SECOND / 2;
        return phases.stream()
                .filter(phase -> phase.fromNanos <= middle && middle < phase.toNanos)
                .map(PhaseInterval::name)
                .findFirst()
                .orElse(null);
    }

    private @Nullable Second secondAt(long nanos) {
        int number = hasStarted() ? secondNumber(nanos) : -1;
        return number < 0 ? null : getOrCreate(number);
    }

    private int secondNumber(long nanos) {
        return (int) Math.floorDiv(nanos - originNanos, NANOS_PER_SECOND);
    }

    private Second getOrCreate(int number) {
        NumberedSecond latest = recent;
        if (latest != null && latest.number == number) {
            return latest.second;
        }
        Second second = seconds.computeIfAbsent(number, missing -> new Second());
        recent = new NumberedSecond(number, second);
        return second;
    }
}
