package io.eventsql.runner.phases;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.EventSource;
import io.eventsql.runner.load.KeyShare;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Streams and their consumption, on which phases of load run one after the other. For use by one thread. {@link
 * #close()} ends the consumption.
 */
public final class LoadSession implements AutoCloseable {
    private static final Duration STOPPED_TIMEOUT = Duration.ofSeconds(5);

    /**
     * The context of a session.
     *
     * @param spec the specification of the run
     * @param clock the time source
     * @param stop aborts phases and waits
     * @param problems receives problems
     * @param progress displays the progress of a phase
     */
    public record Context(
            RunSpec spec, LoadClock clock, StopSignal stop, Problems problems, ProgressDisplay progress) {}

    /**
     * The publisher of a session's events.
     *
     * @param run the run's id, which the events carry
     * @param runner the number of this process among those that publish the events of the run
     */
    public record Publisher(String run, int runner) {}

    private record SentPhase(PhaseLoad load, LoadGenerator generator) {}

    private final Context context;
    private final Publisher publisher;
    private final RunSeries series;
    private final List<SessionStream> streams = new ArrayList<>();
    private final List<SentPhase> sentPhases = new ArrayList<>();
    private final Consumption consumption;
    private long nextStartNanos = Long.MIN_VALUE;

    private LoadSession(Context context, Publisher publisher, RunSeries series, Consumption consumption) {
        this.context = context;
        this.publisher = publisher;
        this.series = series;
        this.consumption = consumption;
    }

    /**
     * Creates streams of a driver and starts their consumers and replayers in this process.
     *
     * @param driver remains open when the session is closed
     * @throws Exception if the driver fails
     */
    public static LoadSession open(Driver driver, Context context) throws Exception {
        String run = BenchmarkEvent.randomRun();
        List<String> names = new ArrayList<>();
        int partitions = context.spec.streams().partitions();
        for (int number = 0; number < context.spec.streams().streams() && !context.stop.isRaised(); number++) {
            names.add("run_" + run + "_" + number);
            driver.createStream(names.getLast(), partitions);
        }
        return ofDriver(names, driver, new Publisher(run, 0), context);
    }

    /**
     * Starts the consumers and replayers of existing streams of a driver in this process.
     *
     * @param driver remains open when the session is closed
     * @throws Exception if the driver fails
     */
    public static LoadSession ofDriver(List<String> names, Driver driver, Publisher publisher, Context context)
            throws Exception {
        RunSpec.StreamsSpec asked = context.spec.streams();
        RunSeries series = new RunSeries(asked.consumers());
        DriverConsumption consumption =
                new DriverConsumption(driver, publisher.run, context.clock, series, context.problems);
        LoadSession session = new LoadSession(context, publisher, series, consumption);
        try {
            for (String name : names) {
                consumption.start(session.addStream(name, driver.publisher(name)), asked);
            }
            return session;
        } catch (Exception e) {
            session.close();
            throw e;
        }
    }

    /** Creates a session on an existing stream, whose events are consumed elsewhere. */
    public static LoadSession ofStream(
            String name, PublishTarget target, Consumption consumption, Publisher publisher, Context context) {
        LoadSession session = new LoadSession(context, publisher, new RunSeries(0), consumption);
        session.addStream(name, target);
        return session;
    }

    private SessionStream addStream(String name, PublishTarget target) {
        SessionStream stream = new SessionStream(name, target);
        streams.add(stream);
        return stream;
    }

    /** Returns the name of a consumer in this process, numbered from 0. */
    public static String consumerName(int number) {
        return "c" + number;
    }

    /** Returns the run's id, which its events carry. */
    public String run() {
        return publisher.run;
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
        LoadPhase time = LoadPhase.ofNanos(
                !phase.measured(),
                anchor,
                Math.max(anchor.nanos(), nextStartNanos),
                Duration.ofSeconds(phase.seconds()).toNanos());
        Progress progress = context.progress.start(phase.name(), eventsPerSecond * phase.seconds());
        PhaseLoad load = new PhaseLoad(phase, eventsPerSecond, time, series);
        LoadGenerator generator = createGenerator(phase, eventsPerSecond);
        monitor(load, time, progress, () -> load.recordSent(generator.send(time, load), context.clock.nanos()));
        sentPhases.add(new SentPhase(load, generator));
        return load;
    }

    /**
     * Runs a phase with given start and end and returns when all its calls are answered.
     *
     * @param eventsPerSecond the rate of an open loop; 0 for a phase with callers
     * @param progress displays its progress
     */
    public PhaseLoad sendAndAwait(PhaseSpec phase, long eventsPerSecond, LoadPhase time, Progress progress) {
        PhaseLoad load = new PhaseLoad(phase, eventsPerSecond, time, series);
        LoadGenerator generator = createGenerator(phase, eventsPerSecond);
        monitor(load, time, progress, () -> load.recordSent(generator.run(time, load), context.clock.nanos()));
        return load;
    }

    private void monitor(PhaseLoad load, LoadPhase time, Progress progress, Runnable calls) {
        if (load.spec().measured()) {
            series.start(load.startNanos());
            streams.forEach(stream -> stream.startPhase(load));
        }
        try (LoadWatchdog watchdog = LoadWatchdog.start(load.meter(), progress, series, context.clock, context.stop)) {
            calls.run();
            watchdog.check();
        }
        boolean hasEnd = time.endNanos() < Long.MAX_VALUE && !context.stop.isRaised();
        nextStartNanos = hasEnd ? time.endNanos() : context.clock.nanos();
        series.addPhase(load.spec().name(), load.startNanos(), load.endedNanos());
    }

    private LoadGenerator createGenerator(PhaseSpec phase, long eventsPerSecond) {
        int keys = context.spec.events().keys();
        EventSource source = new EventSource(
                publisher.run,
                publisher.runner,
                context.spec.events().bytes(),
                keys == 0 ? List.of() : KeyShare.keysOf(publisher.runner, keys));
        LoadContext loadContext =
                new LoadContext(source, List.copyOf(streams), phase.eventsPerCall(), context.clock, context.stop);
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
     * Waits until every call is answered and every acknowledged event is consumed. After a stop signal the wait is
     * short. Without it, events in transit would count as lost.
     *
     * @return whether all were consumed in time
     */
    public boolean drain() {
        awaitAnswers();
        int timeoutSeconds = context.spec.streams().consumeTimeoutSeconds();
        boolean consumed = consumption.await(Duration.ofSeconds(timeoutSeconds), context.stop)
                || (context.stop.isRaised() && consumption.await(STOPPED_TIMEOUT, new StopSignal()));
        if (!consumed && !context.stop.isRaised()) {
            context.problems.add("Not everything was consumed within " + timeoutSeconds + " s");
        }
        // The next phase may start now.
        nextStartNanos = context.clock.nanos();
        return consumed;
    }

    /** Returns the acknowledged events of all phases so far, including warm-ups. */
    public long acknowledgedEvents() {
        return streams.stream().mapToLong(SessionStream::acknowledgedEvents).sum();
    }

    /** Returns the counts of each consumer in this process. */
    public List<ConsumerCounts> consumerCounts() {
        return consumption.consumerCounts();
    }

    /** Returns the counts of each replayer in this process. */
    public List<ReplayerCounts> replayerCounts() {
        return consumption.replayerCounts();
    }

    @Override
    public void close() {
        consumption.close();
    }
}
