package io.eventsql.runner.consumption;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.io.IOException;
import java.time.Duration;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** Synchronizes the start of all runners of a run. The app keeps the state of the barrier. */
public final class StartBarrier {
    /**
     * The offset of another machine's clock, measured by one request and its response.
     *
     * @param aheadMs how far the other clock is ahead, in milliseconds; negative if it is behind
     * @param uncertaintyMs the maximum error in milliseconds: half of the round-trip time
     */
    public record ClockOffset(double aheadMs, double uncertaintyMs) {

        /**
         * Assumes that the other clock was read in the middle of the round trip.
         *
         * @param askedMicros the time of the request on this clock
         * @param theirMicros the time on the other clock
         * @param answeredMicros the time of the response on this clock
         */
        static ClockOffset of(long askedMicros, long theirMicros, long answeredMicros) {
            double middle = (askedMicros + answeredMicros) / 2.0;
            return new ClockOffset((theirMicros - middle) / 1_000, (answeredMicros - askedMicros) / 2.0 / 1_000);
        }
    }

    /**
     * Additional requests for clock comparison. There is time until the start, and the first responses on a new
     * connection are slow.
     */
    private static final int MORE_QUESTIONS = 5;

    private static final long POLL_NANOS = Duration.ofMillis(50).toNanos();

    private final AppClient app;
    private final String run;
    private final int runner;
    private final int runners;
    private final LoadClock clock;
    private @Nullable ClockOffset appClock;

    /**
     * @param runner this runner's number
     * @param runners the number of runners
     */
    public StartBarrier(AppClient app, String run, int runner, int runners, LoadClock clock) {
        this.app = app;
        this.run = run;
        this.runner = runner;
        this.runners = runners;
        this.clock = clock;
    }

    /**
     * Waits for the other runners.
     *
     * @param name the name of the barrier
     * @param timeout the maximum time to wait
     * @return the start time in epoch microseconds; empty after a stop signal
     * @throws IOException if the app does not respond or the other runners do not arrive in time
     */
    public OptionalLong await(String name, Duration timeout, StopSignal stop) throws IOException {
        long started = clock.nanos();
        while (!stop.isRaised()) {
            AppClient.Barrier barrier = arrive(name);
            Long startAtMicros = barrier.startAtMicros();
            if (startAtMicros != null) {
                for (int more = 0; more < MORE_QUESTIONS; more++) {
                    arrive(name);
                }
                return OptionalLong.of(startAtMicros);
            }
            if (clock.nanos() - started > timeout.toNanos()) {
                throw new IOException("Only " + barrier.arrived() + " of " + runners + " runners were ready to start"
                        + " within " + timeout.toSeconds() + " s");
            }
            clock.parkNanos(POLL_NANOS);
        }
        return OptionalLong.empty();
    }

    /**
     * Reports that this runner has arrived, without waiting for the others.
     *
     * @return the start time in epoch microseconds; empty until all runners have arrived
     * @throws IOException if the app does not respond
     */
    public OptionalLong poll(String name) throws IOException {
        Long startAtMicros = arrive(name).startAtMicros();
        return startAtMicros == null ? OptionalLong.empty() : OptionalLong.of(startAtMicros);
    }

    private AppClient.Barrier arrive(String name) throws IOException {
        long asked = clock.epochMicros();
        AppClient.Barrier barrier = app.arrive(run, name, runner, runners);
        ClockOffset offset = ClockOffset.of(asked, barrier.nowMicros(), clock.epochMicros());
        if (appClock == null || offset.uncertaintyMs() < appClock.uncertaintyMs()) {
            appClock = offset;
        }
        return barrier;
    }

    /**
     * Returns the offset of the app's clock, measured by the fastest response; {@code null} before the first response.
     */
    public @Nullable ClockOffset appClock() {
        return appClock;
    }
}
