package io.eventsql.runner.phases;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.LoadStream;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.report.LoadWatchdog;
import io.eventsql.runner.report.Progress;
import io.eventsql.runner.report.ProgressDisplay;
import io.eventsql.runner.report.SeriesProgress;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.workload.EventSource;
import io.eventsql.runner.workload.KeyShare;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;

/**
 * New streams of a driver and their consumers, on which phases of load run one after the other. For use by one thread.
 * {@link #close()} stops consumers and replayers, but leaves the driver open.
 */
public final class LoadSession implements AutoCloseable {
    private static final Duration STOPPED_TIMEOUT = Duration.ofSeconds(5);
    private static final long POLL_NANOS = Duration.ofMillis(10).toNanos();

    /**
     * The context of a session.
     *
     * @param spec the specification of the run
     * @param driver the driver that creates the streams
     * @param clock the time source
     * @param stop aborts phases and waits
     * @param problems receives problems
     * @param progress displays the progress of a phase
     */
    public record Context(
            RunSpec spec,
            Driver driver,
            LoadClock clock,
            StopSignal stop,
            Problems problems,
            ProgressDisplay progress) {}

    private record SentPhase(PhaseLoad load, LoadGenerator generator) {}

    private final Context context;
    private final String run = BenchmarkEvent.randomRun();
    private final RunSeries series;
    private final List<SessionStream> streams = new ArrayList<>();
    private final List<DeliveryChecker> checkers = new ArrayList<>();
    private final List<Replayer> replayers = new ArrayList<>();
    private final List<AutoCloseable> consumers = new ArrayList<>();
    private final List<SentPhase> sentPhases = new ArrayList<>();
    private long nextStartNanos = Long.MIN_VALUE;

    private LoadSession(Context context) {
        this.context = context;
        this.series = new RunSeries(context.spec.streams().consumers());
    }

    /**
     * Creates the streams and starts their consumers and replayers.
     *
     * @throws Exception if the driver fails
     */
    public static LoadSession open(Context context) throws Exception {
        LoadSession session = new LoadSession(context);
        try {
            session.start();
            return session;
        } catch (Exception e) {
            session.close();
            throw e;
        }
    }

    private void start() throws Exception {
        RunSpec.StreamsSpec asked = context.spec.streams();
        for (int number = 0; number < asked.streams() && !context.stop.isRaised(); number++) {
            String name = "run_" + run + "_" + number;
            context.driver.createStream(name, asked.partitions());
            SessionStream stream = new SessionStream(name, new LoadStream(context.driver.publisher(name)));
            streams.add(stream);
            for (int consumer = 0; consumer < asked.consumers(); consumer++) {
                startConsumer(stream, "c" + consumer);
            }
            for (int replayer = 0; replayer < asked.replayers(); replayer++) {
                replayers.add(Replayer.start(context.driver, stream, "r" + replayer, context.problems));
            }
        }
    }

    private void startConsumer(SessionStream stream, String consumer) throws Exception {
        DeliveryChecker checker = new DeliveryChecker(run, stream, consumer, context.clock, series, context.problems);
        consumers.add(context.driver.consume(stream.name(), consumer, checker));
        checkers.add(checker);
    }

    /** Returns the run's id, which its events carry. */
    public String run() {
        return run;
    }

    /** Returns the time series of the run. */
    public RunSeries series() {
        return series;
    }

    /**
     * Runs a phase and returns when all its calls are made. Answers may be outstanding, so that the next phase follows
     * without a pause.
     *
     * @param eventsPerSecond the rate of an open loop; 0 for a phase with callers
     */
    public PhaseLoad send(PhaseSpec phase, long eventsPerSecond) {
        ClockAnchor anchor = ClockAnchor.now(context.clock);
        long start = Math.max(anchor.nanos(), nextStartNanos);
        LoadPhase time = LoadPhase.ofNanos(
                !phase.measured(),
                anchor,
                start,
                Duration.ofSeconds(phase.seconds()).toNanos());
        if (phase.measured()) {
            series.start(start);
        }
        PhaseLoad load = new PhaseLoad(phase, eventsPerSecond, time, series);
        if (phase.measured()) {
            streams.forEach(stream -> stream.startPhase(load));
        }
        LoadGenerator generator = createGenerator(phase, eventsPerSecond);
        long total = eventsPerSecond * phase.seconds();
        Progress progress = new SeriesProgress(context.progress.start(phase.name(), total), series, context.clock);
        try (LoadWatchdog watchdog = LoadWatchdog.start(load.meter(), progress, context.clock, context.stop)) {
            load.recordSent(generator.send(time, load), context.clock.nanos());
            watchdog.check();
        }
        nextStartNanos = context.stop.isRaised() ? context.clock.nanos() : time.endNanos();
        series.addPhase(phase.name(), start, load.endedNanos());
        sentPhases.add(new SentPhase(load, generator));
        return load;
    }

    private LoadGenerator createGenerator(PhaseSpec phase, long eventsPerSecond) {
        int bytes = context.spec.events().bytes();
        int keys = context.spec.events().keys();
        EventSource source = new EventSource(
                run,
                0,
                bytes == 0 ? OptionalInt.empty() : OptionalInt.of(bytes),
                keys == 0 ? List.of() : KeyShare.keysOf(0, keys));
        LoadContext loadContext = new LoadContext(
                source,
                streams.stream().map(SessionStream::load).toList(),
                phase.eventsPerCall(),
                context.clock,
                context.stop);
        Integer callers = phase.callers();
        if (callers == null) {
            Long inFlight = phase.inFlight();
            return new OpenLoop(loadContext, eventsPerSecond, inFlight == null ? Long.MAX_VALUE : inFlight);
        }
        return phase.async() ? Callers.notWaiting(loadContext, callers) : Callers.waiting(loadContext, callers);
    }

    /** Waits until every call is answered or timed out. */
    public void awaitAnswers() {
        sentPhases.forEach(sent -> sent.generator.awaitAnswers(sent.load, sent.load.sentEvents()));
        sentPhases.clear();
    }

    /**
     * Waits until every call is answered and the consumers have received every acknowledged event. After a stop signal
     * the wait is short. Without it, events in transit would count as lost.
     */
    public void drain() {
        awaitAnswers();
        int timeoutSeconds = context.spec.streams().consumeTimeoutSeconds();
        boolean consumed = awaitConsumption(Duration.ofSeconds(timeoutSeconds), context.stop);
        if (context.stop.isRaised()) {
            awaitConsumption(STOPPED_TIMEOUT, new StopSignal());
        } else if (!consumed) {
            context.problems.add("Not everything was consumed within " + timeoutSeconds + " s");
        }
        // The next phase may start now.
        nextStartNanos = context.clock.nanos();
    }

    private boolean awaitConsumption(Duration timeout, StopSignal stop) {
        long started = context.clock.nanos();
        while (!stop.isRaised()) {
            if (allReceived()) {
                return true;
            }
            if (context.clock.nanos() - started > timeout.toNanos()) {
                return false;
            }
            context.clock.parkNanos(POLL_NANOS);
        }
        return false;
    }

    private boolean allReceived() {
        return checkers.stream().allMatch(DeliveryChecker::isUpToDate);
    }

    /** Returns the counts of each consumer. */
    public List<ConsumerCounts> consumerCounts() {
        return checkers.stream().map(DeliveryChecker::counts).toList();
    }

    /** Returns the counts of each replayer. */
    public List<ReplayerCounts> replayerCounts() {
        return replayers.stream().map(Replayer::counts).toList();
    }

    @Override
    public void close() {
        replayers.forEach(Replayer::close);
        for (AutoCloseable consumer : consumers) {
            try {
                consumer.close();
            } catch (Exception e) {
                context.problems.add("Closing a consumer failed: " + e);
            }
        }
        consumers.clear();
    }
}
