package io.eventsql.runner.trials;

import io.eventsql.Event;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.EventSource;
import io.eventsql.runner.load.KeyShare;
import io.eventsql.runner.load.LoadCall;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadStream;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.load.UnansweredCalls;
import io.eventsql.runner.spec.RunSpec;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Runs trials, each on an empty stream, after an unmeasured warm-up trial. For use by one thread. */
public final class Trials {
    /**
     * The maximum size of messages created before a blast, so that creating them is not measured. They are reused
     * beyond it.
     */
    private static final long PREPARED_BYTES_MAX = 64 << 20;

    private static final int WARMUP_EVENTS_MAX = 10_000;

    private final TrialContext context;

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
    }

    /**
     * Sends all messages of a trial without waiting, one per call, and waits for the last answer. Trials with failed
     * messages are valid and record their number. After a stop signal, the trials so far are returned.
     *
     * @param eventBytes the exact size of a message
     * @throws Exception if the driver cannot create or clear a stream
     */
    public List<BlastTrial> blast(RunSpec.BlastSpec settings, int eventBytes) throws Exception {
        TrialStream stream = new TrialStream("blast_" + context.run);
        int messages = (int) Math.min(settings.messages(), settings.capBytes() / eventBytes);
        int distinct = Math.clamp(PREPARED_BYTES_MAX / eventBytes, 1, messages);
        List<Event> prepared =
                source(eventBytes).createEvents(KeyShare.withoutKeys(), false, 0, distinct, EpochMicros.now());
        List<BlastTrial> trials = new ArrayList<>();
        for (int trial = 0; trial <= settings.repeats() && !context.stop.isRaised(); trial++) {
            Iterator<List<Event>> calls = IntStream.range(0, messages)
                    .mapToObj(i -> List.of(prepared.get(i % prepared.size())))
                    .iterator();
            TrialStats.Outcome outcome = run(stream.reset(), calls, false);
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
    public List<SweepTrial> sweep(RunSpec.SweepSpec settings, int eventBytes, RunSpec.EnvironmentSpec environment)
            throws Exception {
        TrialStream stream = new TrialStream("sweep_" + context.run);
        List<SweepTrial> trials = new ArrayList<>();
        int most = settings.eventCounts().stream().max(Integer::compare).orElseThrow();
        sweepOnce(settings, eventBytes, stream, Math.min(most, WARMUP_EVENTS_MAX));
        for (int events : settings.eventCounts()) {
            for (int trial = 1; trial <= settings.trials() && !context.stop.isRaised(); trial++) {
                Instant begun = Instant.EPOCH.plus(context.clock.epochMicros(), ChronoUnit.MICROS);
                TrialStats.Outcome outcome = sweepOnce(settings, eventBytes, stream, events);
                addFailures(events + " events, trial " + trial, outcome);
                if (outcome.complete() && outcome.failed() == 0) {
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

    private TrialStats.Outcome sweepOnce(RunSpec.SweepSpec settings, int eventBytes, TrialStream stream, int events)
            throws Exception {
        BufferedCalls calls = new BufferedCalls(source(eventBytes), events, settings.bufferBytes());
        return run(stream.reset(), calls, settings.waiting());
    }

    /**
     * Makes the calls of a trial sequentially and waits for their answers.
     *
     * @param calls the events of each call, created on demand
     * @param waiting whether each call waits for its answer; otherwise only the end of the trial waits
     */
    private TrialStats.Outcome run(PublishTarget target, Iterator<List<Event>> calls, boolean waiting) {
        TrialStats stats = new TrialStats();
        LoadStream stream = new LoadStream(target);
        long start = context.clock.nanos();
        long sent = 0;
        while (calls.hasNext() && !context.stop.isRaised()) {
            List<Event> events = calls.next();
            LoadCall call = new LoadCall(stream, false, sent, events, context.clock.nanos());
            if (waiting) {
                call.publish(context.clock, stats);
            } else {
                call.publishAsync(context.clock, stats);
            }
            sent += events.size();
        }
        boolean complete = !calls.hasNext();
        UnansweredCalls.await(context.clock, context.stop, stats, sent);
        return stats.outcome(start, complete);
    }

    private void addFailures(String what, TrialStats.Outcome outcome) {
        Throwable first = outcome.firstFailure();
        if (first != null) {
            context.problems.accept(what + ": " + outcome.failed() + " events failed, first: " + first);
        }
    }

    private EventSource source(int eventBytes) {
        return new EventSource(context.run, 0, eventBytes, List.of());
    }

    /** A stream that is empty at the start of each trial. Cleared, or replaced by a new one if the driver cannot clear. */
    private final class TrialStream {
        private final String name;
        private String current = "";
        private int made;

        /** @param name the name of the first stream; further ones get a number suffix */
        TrialStream(String name) {
            this.name = name;
        }

        /** Empties the stream and returns its publisher. */
        PublishTarget reset() throws Exception {
            if (made == 0 || !tryClear()) {
                current = made == 0 ? name : name + "_" + made;
                context.driver.createStream(current, context.partitions);
                made++;
            }
            return context.driver.publisher(current);
        }

        private boolean tryClear() throws Exception {
            try {
                context.driver.clear(current);
                return true;
            } catch (UnsupportedOperationException e) {
                return false;
            }
        }
    }

    /** Calls with as many events as fit into a buffer, at least one. */
    private static final class BufferedCalls implements Iterator<List<Event>> {
        private final KeyShare keys = KeyShare.withoutKeys();
        private final EventSource source;
        private final int count;
        private final int bufferBytes;
        private int made;
        private @Nullable Event next;

        /** @param count the number of events in total, at least 1 */
        BufferedCalls(EventSource source, int count, int bufferBytes) {
            this.source = source;
            this.count = count;
            this.bufferBytes = bufferBytes;
            this.next = make();
        }

        private @Nullable Event make() {
            if (made == count) {
                return null;
            }
            long number = made++;
            return source.createEvents(keys, false, number, 1, EpochMicros.now())
                    .getFirst();
        }

        @Override
        public boolean hasNext() {
            return next != null;
        }

        @Override
        public List<Event> next() {
            if (next == null) {
                throw new NoSuchElementException();
            }
            List<Event> call = new ArrayList<>();
            long bytes = 0;
            for (Event event = next; event != null; event = make()) {
                bytes += event.value().length;
                if (!call.isEmpty() && bytes > bufferBytes) {
                    next = event;
                    return call;
                }
                call.add(event);
            }
            next = null;
            return call;
        }
    }
}
