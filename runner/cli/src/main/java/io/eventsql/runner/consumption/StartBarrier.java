package io.eventsql.runner.consumption;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.io.IOException;
import java.time.Duration;
import java.util.OptionalLong;

/** Where the runners of a run wait for each other, so that all start at the same moment. The app keeps it. */
public final class StartBarrier {
    private static final long POLL_NANOS = Duration.ofMillis(50).toNanos();

    private final AppClient app;
    private final String run;
    private final int runner;
    private final int runners;
    private final LoadClock clock;

    /**
     * @param runner this runner's number
     * @param runners how many take part
     */
    public StartBarrier(AppClient app, String run, int runner, int runners, LoadClock clock) {
        this.app = app;
        this.run = run;
        this.runner = runner;
        this.runners = runners;
        this.clock = clock;
    }

    /**
     * Waits for the others.
     *
     * @param name the barrier's name
     * @param timeout how long at most
     * @return when to start, epoch microseconds; empty after a stop signal
     * @throws IOException if the app does not answer or the others do not come in time
     */
    public OptionalLong await(String name, Duration timeout, StopSignal stop) throws IOException {
        long started = clock.nanos();
        while (!stop.isRaised()) {
            AppClient.Barrier barrier = app.arrive(run, name, runner, runners);
            Long startAtMicros = barrier.startAtMicros();
            if (startAtMicros != null) {
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
}
