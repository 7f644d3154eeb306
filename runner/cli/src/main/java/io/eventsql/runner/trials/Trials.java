package io.eventsql.runner.trials;

import io.eventsql.Event;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.spec.BlastSpec;
import io.eventsql.runner.spec.EnvironmentSpec;
import io.eventsql.runner.spec.SweepSpec;
import io.eventsql.runner.workload.EventSource;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Runs trials, each on an empty stream, after an unmeasured warm-up trial. For use by one thread. */
public final class Trials {
    /**
     * The maximum size of messages created before a blast, so that creating them is not measured. They are reused
     * beyond it.
     */
    private static final long PREPARED_BYTES_MAX = 64 << 20;

    private static final int WARMUP_EVENTS_MAX = 10_000;

    private final TrialContext context;
    private final TrialLoad load;

    /**
     * The context of trials.
     *
     * @param driver the driver of the measured system
     * @param run the run's id, 8 lower-case hexadecimal characters; part of the names of its streams
     * @param partitions the partitions of each stream
     * @param clock the time source
     * @param stop aborts the trials
     * @param problems receives a line for each trial with failures
     * @param progress receives a line after each trial
     */
    public record TrialContext(
            Driver driver,
            String run,
            int partitions,
            LoadClock clock,
            StopSignal stop,
            Consumer<String> problems,
            Consumer<String> progress) {}

    public Trials(TrialContext context) {
        this.context = context;
        this.load = new TrialLoad(context.clock, context.stop);
    }

    /**
     * Sends all messages of a trial without waiting, one per call, and waits for the last answer. Trials with failed
     * messages are valid and record their number. After a stop signal, the trials so far are returned.
     *
     * @param eventBytes the exact size of a message
     * @throws Exception if the driver cannot create or clear a stream
     */
    public List<BlastTrial> blast(BlastSpec settings, int eventBytes) throws Exception {
        TrialStream stream = new TrialStream(context.driver, "blast_" + context.run, context.partitions);
        int messages = (int) Math.min(settings.messages(), settings.capBytes() / eventBytes);
        List<Event> prepared =
                TrialEvents.prepare(source(eventBytes), Math.clamp(PREPARED_BYTES_MAX / eventBytes, 1, messages));
        List<BlastTrial> trials = new ArrayList<>();
        for (int trial = 0; trial <= settings.repeats() && !context.stop.isRaised(); trial++) {
            TrialOutcome outcome = load.run(stream.reset(), TrialEvents.singleCalls(prepared, messages), false);
            if (trial == 0 || !outcome.complete()) {
                continue;
            }
            BlastTrial measured = BlastTrial.of(trial, outcome, eventBytes);
            trials.add(measured);
            addFailures("trial " + trial, outcome);
            context.progress.accept("Blast %d of %d: %,.0f events/s, %,.1f MB/s"
                    .formatted(
                            trial,
                            settings.repeats(),
                            measured.throughputEventsPerSecond(),
                            measured.bandwidthMbPerSecond()));
        }
        return trials;
    }

    /**
     * Sends the events of each trial in calls of the buffer size. Trials with a failed event are invalid and reported
     * as problems. After a stop signal, the trials so far are returned.
     *
     * @param eventBytes the exact size of a value; 0 for the {@code account_created} event
     * @param environment the measured databases, for the results only
     * @throws Exception if the driver cannot create or clear a stream
     */
    public List<SweepTrial> sweep(SweepSpec settings, int eventBytes, EnvironmentSpec environment) throws Exception {
        TrialStream stream = new TrialStream(context.driver, "sweep_" + context.run, context.partitions);
        List<SweepTrial> trials = new ArrayList<>();
        int most = settings.eventCounts().stream().max(Integer::compare).orElseThrow();
        sweepOnce(settings, eventBytes, stream, Math.min(most, WARMUP_EVENTS_MAX));
        for (int events : settings.eventCounts()) {
            for (int trial = 1; trial <= settings.trials() && !context.stop.isRaised(); trial++) {
                Instant begun = Instant.EPOCH.plus(context.clock.epochMicros(), ChronoUnit.MICROS);
                TrialOutcome outcome = sweepOnce(settings, eventBytes, stream, events);
                addFailures(events + " events, trial " + trial, outcome);
                if (outcome.isValid()) {
                    SweepTrial measured = new SweepTrial(
                            environment.standbys(),
                            environment.databases(),
                            eventBytes == 0 ? "account_created" : "bytes-" + eventBytes,
                            settings.waiting() ? "waiting" : "non-waiting",
                            settings.bufferBytes(),
                            events,
                            trial,
                            outcome.durationNanos() / 1e6,
                            begun.toString());
                    trials.add(measured);
                    context.progress.accept("Sweep, %,d events, trial %d of %d: %,.1f ms"
                            .formatted(events, trial, settings.trials(), measured.durationMs()));
                }
            }
        }
        return trials;
    }

    private TrialOutcome sweepOnce(SweepSpec settings, int eventBytes, TrialStream stream, int events)
            throws Exception {
        return load.run(
                stream.reset(),
                TrialEvents.bufferedCalls(source(eventBytes), events, settings.bufferBytes()),
                settings.waiting());
    }

    private void addFailures(String what, TrialOutcome outcome) {
        Throwable first = outcome.totals().firstFailure();
        if (first != null) {
            context.problems.accept(what + ": " + outcome.totals().failed() + " events failed, first: " + first);
        }
    }

    private EventSource source(int eventBytes) {
        return new EventSource(context.run, 0, eventBytes, List.of());
    }
}
