package io.eventsql.runner.consumption;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadClock;
import java.io.IOException;
import java.time.Duration;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Ends the warm-up of all runners together, when the JVMs of all runners and apps hardly compile. A runner that is warm
 * continues its load until the others are warm, so that they warm up under the whole load. Thread-safe.
 */
public final class WarmupWatch implements AutoCloseable {
    static final String BARRIER = "warm";

    /** The time after its longest warm-up for which a runner waits for the others, which may have started later. */
    static final Duration OTHERS_MAX = Duration.ofSeconds(20);

    /**
     * The bounds of a warm-up.
     *
     * @param shortest its shortest duration
     * @param longest its longest duration
     */
    public record Bounds(Duration shortest, Duration longest) {}

    /**
     * How a warm-up ended.
     *
     * @param seconds its duration
     * @param untilWarm whether it was to last until the JVMs hardly compile, instead of a fixed time
     * @param warm whether the JVMs hardly compiled at its end; false if that was not observed
     * @param compilationMsPerSecond the compilation time of this runner and the apps per second at its end, in
     *     milliseconds; {@code null} if it was not observed
     */
    public record Outcome(
            double seconds,
            boolean untilWarm,
            boolean warm,
            @Nullable Double compilationMsPerSecond) {

        /** Returns the outcome of a warm-up of a fixed duration. */
        public static Outcome fixed(double seconds) {
            return new Outcome(seconds, false, false, null);
        }
    }

    private final Bounds bounds;
    private final CompilationTime.Source compilation;
    private final StartBarrier barrier;
    private final LoadClock clock;
    private final ClockAnchor anchor;
    private final Consumer<String> problems;
    private final CompilationTrend trend = new CompilationTrend();
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("warm-up-watch").factory());
    private boolean hasReported;
    private boolean hasArrived;
    private boolean isWarm;
    private volatile long endNanos = Long.MAX_VALUE;

    /**
     * @param compilation the compilation times of this runner and the apps
     * @param barrier shared with the other runners
     * @param anchor the start of the warm-up
     * @param problems receives the first failure
     */
    public WarmupWatch(
            Bounds bounds,
            CompilationTime.Source compilation,
            StartBarrier barrier,
            LoadClock clock,
            ClockAnchor anchor,
            Consumer<String> problems) {
        this.bounds = bounds;
        this.compilation = compilation;
        this.barrier = barrier;
        this.clock = clock;
        this.anchor = anchor;
        this.problems = problems;
    }

    /** Starts checking each second. */
    @SuppressWarnings("FutureReturnValueIgnored") // Cancelled with the timer.
    public void start() {
        timer.scheduleAtFixedRate(this::check, 1, 1, TimeUnit.SECONDS);
    }

    /** Returns the end of the warm-up on the monotonic clock; {@link Long#MAX_VALUE} while it is unknown. */
    public long endNanos() {
        return endNanos;
    }

    /** Samples the compilation times, and sets the end when all runners are warm or the longest time is over. */
    synchronized void check() {
        if (endNanos != Long.MAX_VALUE) {
            return;
        }
        long now = clock.nanos();
        long elapsed = now - anchor.nanos();
        sample(now);
        if (elapsed >= bounds.longest.plus(OTHERS_MAX).toNanos()) {
            report("The other runners were not warm in time");
            endNanos = now;
            return;
        }
        boolean isLong = elapsed >= bounds.longest.toNanos();
        hasArrived |= isLong || (elapsed >= bounds.shortest.toNanos() && trend.isWarm());
        if (hasArrived) {
            pollOthers();
        }
    }

    private void sample(long now) {
        try {
            trend.add(now, compilation.now().totalMs());
            isWarm = trend.isWarm();
        } catch (IOException | RuntimeException e) {
            // Without the apps' times the warm-up takes its longest time.
            trend.clear();
            isWarm = false;
            report("The compilation time is unknown: " + e.getMessage());
        }
    }

    private void pollOthers() {
        try {
            OptionalLong startAtMicros = barrier.poll(BARRIER);
            if (startAtMicros.isPresent()) {
                endNanos = anchor.nanosAt(startAtMicros.getAsLong());
            }
        } catch (IOException | RuntimeException e) {
            report("Waiting for the other runners' warm-up: " + e.getMessage());
        }
    }

    private void report(String problem) {
        if (!hasReported) {
            hasReported = true;
            problems.accept(problem);
        }
    }

    /** Returns the outcome so far. */
    public synchronized Outcome outcome() {
        OptionalDouble rate = trend.msPerSecond();
        double seconds = (Math.min(clock.nanos(), endNanos) - anchor.nanos()) / 1e9;
        return new Outcome(
                Math.round(seconds * 10) / 10.0,
                true,
                isWarm,
                rate.isPresent() ? (Double) (Math.round(rate.getAsDouble() * 10) / 10.0) : null);
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }
}
