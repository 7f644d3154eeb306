package io.eventsql.runner.trials;

import io.eventsql.Event;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.workload.EventSource;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.Consumer;

/** Runs trials: each from an empty stream, after one that is not measured. For one thread. */
public final class Trials {
    /** Messages made before a blast, so that making them is not measured; beyond it they are sent again. */
    private static final long PREPARED_BYTES_MAX = 64 << 20;

    private static final int WARMUP_EVENTS_MAX = 10_000;

    private final Parts parts;
    private final TrialLoad load;

    /**
     * What trials work with.
     *
     * @param driver the system
     * @param run the run's id, 8 lower-case hexadecimal characters; part of the names of its streams
     * @param partitions of each stream
     * @param clock the time
     * @param stop ends the trials early
     * @param progress takes a line after each trial
     */
    public record Parts(
            Driver driver, String run, int partitions, LoadClock clock, StopSignal stop, Consumer<String> progress) {}

    public Trials(Parts parts) {
        this.parts = parts;
        this.load = new TrialLoad(parts.clock, parts.stop);
    }

    /**
     * Sends all messages of a trial without waiting, one a call, and waits for the last answer. Trials in which messages
     * failed count; they say how many.
     *
     * @throws Exception if the driver cannot make or clear a stream
     */
    public Measured<BlastTrial> blast(BlastSettings settings) throws Exception {
        TrialStream stream = new TrialStream(parts.driver, "blast_" + parts.run, parts.partitions);
        int messages = settings.messagesOfTrial();
        List<Event> prepared = TrialEvents.prepare(
                source(OptionalInt.of(settings.eventBytes())),
                Math.clamp(PREPARED_BYTES_MAX / settings.eventBytes(), 1, messages));
        List<BlastTrial> trials = new ArrayList<>();
        List<String> problems = new ArrayList<>();
        for (int trial = 0; trial <= settings.repeats() && !parts.stop.isRaised(); trial++) {
            TrialOutcome outcome = load.run(stream.empty(), TrialEvents.single(prepared, messages), false);
            if (trial == 0 || !outcome.complete()) {
                continue;
            }
            BlastTrial measured = BlastTrial.of(trial, outcome, settings.eventBytes());
            trials.add(measured);
            noteFailures(problems, "trial " + trial, outcome);
            parts.progress.accept("Blast %d of %d: %,.0f events/s, %,.1f MB/s"
                    .formatted(
                            trial,
                            settings.repeats(),
                            measured.throughputEventsPerSecond(),
                            measured.bandwidthMbPerSecond()));
        }
        return new Measured<>(trials, problems, parts.stop.isRaised());
    }

    /**
     * Sends the events of each trial in calls of the buffer's size. Trials in which an event failed do not count: they
     * are among the problems.
     *
     * @throws Exception if the driver cannot make or clear a stream
     */
    public Measured<SweepTrial> sweep(SweepSettings settings) throws Exception {
        TrialStream stream = new TrialStream(parts.driver, "sweep_" + parts.run, parts.partitions);
        List<SweepTrial> trials = new ArrayList<>();
        List<String> problems = new ArrayList<>();
        int most = settings.eventCounts().stream().max(Integer::compare).orElseThrow();
        sweepOnce(settings, stream, Math.min(most, WARMUP_EVENTS_MAX));
        for (int events : settings.eventCounts()) {
            for (int trial = 1; trial <= settings.trials() && !parts.stop.isRaised(); trial++) {
                Instant begun = Instant.EPOCH.plus(parts.clock.epochMicros(), ChronoUnit.MICROS);
                TrialOutcome outcome = sweepOnce(settings, stream, events);
                noteFailures(problems, events + " events, trial " + trial, outcome);
                if (outcome.counts()) {
                    SweepTrial measured = trial(settings, events, trial, outcome, begun);
                    trials.add(measured);
                    parts.progress.accept("Sweep, %,d events, trial %d of %d: %,.1f ms"
                            .formatted(events, trial, settings.trials(), measured.durationMs()));
                }
            }
        }
        return new Measured<>(trials, problems, parts.stop.isRaised());
    }

    private TrialOutcome sweepOnce(SweepSettings settings, TrialStream stream, int events) throws Exception {
        SweepSettings.Buffer buffer = settings.buffer();
        return load.run(
                stream.empty(),
                TrialEvents.buffered(source(settings.eventBytes()), events, buffer.bytes()),
                buffer.waiting());
    }

    private static SweepTrial trial(
            SweepSettings settings, int events, int trial, TrialOutcome outcome, Instant begun) {
        return new SweepTrial(
                settings.cluster().type(),
                settings.cluster().nodes(),
                settings.eventType(),
                settings.buffer().type(),
                settings.buffer().bytes(),
                events,
                trial,
                outcome.durationNanos() / 1e6,
                begun.toString());
    }

    private static void noteFailures(List<String> problems, String what, TrialOutcome outcome) {
        Throwable first = outcome.totals().firstFailure();
        if (first != null) {
            problems.add(what + ": " + outcome.totals().failed() + " events failed, first: " + first);
        }
    }

    private EventSource source(OptionalInt eventBytes) {
        return new EventSource(parts.run, 0, eventBytes, List.of());
    }
}
