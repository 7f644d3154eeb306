package io.eventsql.runner.phases;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadParts;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.LoadStream;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.report.ClosingProgress;
import io.eventsql.runner.report.LoadWatch;
import io.eventsql.runner.report.Progress;
import io.eventsql.runner.report.ProgressDisplay;
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
 * New streams of a driver with their consumers, on which phases of load are played one after the other. For one thread;
 * {@link #close()} ends consumers and replayers, but leaves the driver open.
 */
public final class LoadSession implements AutoCloseable {
    private static final Duration WAIT_WHEN_STOPPED = Duration.ofSeconds(5);
    private static final long POLL_NANOS = Duration.ofMillis(10).toNanos();

    /**
     * What a session works with.
     *
     * @param spec the run
     * @param driver where streams are made
     * @param clock the time
     * @param stop ends phases and waits early
     * @param problems takes what goes wrong
     * @param progress shows how far a phase is
     */
    public record Setup(
            RunSpec spec,
            Driver driver,
            LoadClock clock,
            StopSignal stop,
            Problems problems,
            ProgressDisplay progress) {}

    private record SentPhase(PhaseLoad load, LoadGenerator generator) {}

    private final Setup setup;
    private final String run = BenchmarkEvent.randomRun();
    private final RunSeries series;
    private final List<LoadedStream> streams = new ArrayList<>();
    private final List<SeenByConsumer> seen = new ArrayList<>();
    private final List<Replayer> replayers = new ArrayList<>();
    private final List<AutoCloseable> consumers = new ArrayList<>();
    private final List<SentPhase> unanswered = new ArrayList<>();
    private long freeFromNanos = Long.MIN_VALUE;

    private LoadSession(Setup setup) {
        this.setup = setup;
        this.series = new RunSeries(setup.spec.streams().consumers());
    }

    /**
     * Makes the streams and starts their consumers and replayers.
     *
     * @throws Exception if the driver cannot
     */
    public static LoadSession open(Setup setup) throws Exception {
        LoadSession session = new LoadSession(setup);
        try {
            session.start();
            return session;
        } catch (Exception e) {
            session.close();
            throw e;
        }
    }

    private void start() throws Exception {
        RunSpec.StreamsSpec asked = setup.spec.streams();
        for (int number = 0; number < asked.streams() && !setup.stop.isRaised(); number++) {
            String name = "run_" + run + "_" + number;
            setup.driver.createStream(name, asked.partitions());
            LoadedStream stream = new LoadedStream(name, new LoadStream(setup.driver.publisher(name)));
            streams.add(stream);
            for (int consumer = 0; consumer < asked.consumers(); consumer++) {
                consume(stream, "c" + consumer);
            }
            for (int replayer = 0; replayer < asked.replayers(); replayer++) {
                replayers.add(Replayer.start(setup.driver, stream, "r" + replayer, setup.problems));
            }
        }
    }

    private void consume(LoadedStream stream, String consumer) throws Exception {
        SeenByConsumer checked = new SeenByConsumer(run, stream, consumer, setup.clock, series, setup.problems);
        consumers.add(setup.driver.consume(stream.name(), consumer, checked));
        seen.add(checked);
    }

    /** The run's id, which its events carry. */
    public String run() {
        return run;
    }

    /** The run second by second. */
    public RunSeries series() {
        return series;
    }

    /**
     * Plays a phase and returns when all its calls are made. Answers may be outstanding: what follows is sent meanwhile,
     * without a pause.
     *
     * @param eventsPerSecond of an open loop; 0: the phase has callers
     */
    public PhaseLoad send(PhaseSpec phase, long eventsPerSecond) {
        ClockAnchor anchor = ClockAnchor.now(setup.clock);
        long start = Math.max(anchor.nanos(), freeFromNanos);
        LoadPhase time = LoadPhase.ofNanos(
                !phase.measured(),
                anchor,
                start,
                Duration.ofSeconds(phase.seconds()).toNanos());
        if (phase.measured()) {
            series.begin(start);
        }
        PhaseLoad load = new PhaseLoad(phase, eventsPerSecond, time, series);
        if (phase.measured()) {
            streams.forEach(stream -> stream.begin(load));
        }
        LoadGenerator generator = generator(phase, eventsPerSecond);
        long total = eventsPerSecond * phase.seconds();
        Progress progress = new ClosingProgress(setup.progress.start(phase.name(), total), series, setup.clock);
        try (LoadWatch watch = LoadWatch.start(load.meter(), progress, setup.clock, setup.stop)) {
            load.sent(generator.send(time, load), setup.clock.nanos());
            watch.check();
        }
        freeFromNanos = setup.stop.isRaised() ? setup.clock.nanos() : time.endNanos();
        series.phase(phase.name(), start, load.endedNanos());
        unanswered.add(new SentPhase(load, generator));
        return load;
    }

    private LoadGenerator generator(PhaseSpec phase, long eventsPerSecond) {
        int bytes = setup.spec.events().bytes();
        int keys = setup.spec.events().keys();
        EventSource source = new EventSource(
                run,
                0,
                bytes == 0 ? OptionalInt.empty() : OptionalInt.of(bytes),
                keys == 0 ? List.of() : KeyShare.keysOf(0, keys));
        LoadParts parts = new LoadParts(
                source,
                streams.stream().map(LoadedStream::load).toList(),
                phase.eventsPerCall(),
                setup.clock,
                setup.stop);
        Integer callers = phase.callers();
        if (callers == null) {
            Long inFlight = phase.inFlight();
            return new OpenLoop(parts, eventsPerSecond, inFlight == null ? Long.MAX_VALUE : inFlight);
        }
        return phase.async() ? Callers.notWaiting(parts, callers) : Callers.waiting(parts, callers);
    }

    /** Waits until every call has an answer or is given up. */
    public void awaitAnswers() {
        unanswered.forEach(sent -> sent.generator.awaitAnswers(sent.load, sent.load.sentEvents()));
        unanswered.clear();
    }

    /**
     * Waits until every call is answered and the consumers have seen every event that was acknowledged. After a stop
     * signal the wait is short: what is on its way would else look lost.
     */
    public void drain() {
        awaitAnswers();
        int timeoutSeconds = setup.spec.streams().consumeTimeoutSeconds();
        boolean consumed = awaitConsumption(Duration.ofSeconds(timeoutSeconds), setup.stop);
        if (setup.stop.isRaised()) {
            awaitConsumption(WAIT_WHEN_STOPPED, new StopSignal());
        } else if (!consumed) {
            setup.problems.add("Not everything was consumed within " + timeoutSeconds + " s");
        }
        // The next phase may begin now.
        freeFromNanos = setup.clock.nanos();
    }

    private boolean awaitConsumption(Duration timeout, StopSignal stop) {
        long started = setup.clock.nanos();
        while (!stop.isRaised()) {
            if (allSeen()) {
                return true;
            }
            if (setup.clock.nanos() - started > timeout.toNanos()) {
                return false;
            }
            setup.clock.parkNanos(POLL_NANOS);
        }
        return false;
    }

    private boolean allSeen() {
        return seen.stream().allMatch(SeenByConsumer::isUpToDate);
    }

    /** What each consumer has seen. */
    public List<ConsumerCounts> consumerCounts() {
        return seen.stream().map(SeenByConsumer::counts).toList();
    }

    /** What each replayer has read. */
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
                setup.problems.add("A consumer did not end well: " + e);
            }
        }
        consumers.clear();
    }
}
