package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.phases.Progress;
import io.eventsql.runner.phases.ProgressDisplay;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSpec;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

/**
 * Phases of load on one stream, with a driver of its own: as in a process of its own, but for the JVM. For use by one thread.
 * {@link #close()} closes the driver.
 */
final class StreamLoad implements AutoCloseable {
    /** The duration of a turn in relation to that of its warm-up. */
    private static final int WARMUPS_PER_TURN = 10;

    private final LimitsContext context;
    private final String stream;
    private final RunSpec run;
    private final Driver driver;
    private final Problems problems;
    private final LoadSession session;

    private StreamLoad(
            LimitsContext context, String stream, RunSpec run, Driver driver, Problems problems, LoadSession session) {
        this.context = context;
        this.stream = stream;
        this.run = run;
        this.driver = driver;
        this.problems = problems;
        this.session = session;
    }

    /** Creates the stream and starts its consumers. */
    static StreamLoad create(LimitsContext context, String stream, LoadedStream loaded) {
        return open(context, stream, loaded, true);
    }

    /** Starts the consumers of an existing stream. */
    static StreamLoad attach(LimitsContext context, String stream, LoadedStream loaded) {
        return open(context, stream, loaded, false);
    }

    /** What is measured on a stream. */
    interface Measured<T> {
        T on(StreamLoad load) throws SQLException;
    }

    /**
     * Measures on a new stream, which is deleted afterwards.
     *
     * @param what part of the stream's name, which is never used again: other libraries may still know the deleted stream
     */
    static <T> T onNew(LimitsContext context, String what, LoadedStream loaded, Measured<T> measured)
            throws SQLException {
        String stream = context.stream(what + "_" + BenchmarkEvent.randomRun());
        T result;
        try (StreamLoad load = create(context, stream, loaded)) {
            result = measured.on(load);
        }
        context.deleteStream(stream);
        return result;
    }

    private static StreamLoad open(LimitsContext context, String stream, LoadedStream loaded, boolean isNew) {
        RunSpec run = loaded.run(stream);
        Driver driver = context.openDriver(loaded);
        try {
            if (isNew) {
                driver.createStream(stream, loaded.partitions());
            }
            Problems problems = new Problems();
            LoadSession session = LoadSession.ofDriver(
                    List.of(stream),
                    driver,
                    new LoadSession.Publisher(context.run(), 0),
                    new LoadSession.Context(
                            run,
                            context.clock(),
                            context.stop(),
                            problems,
                            ProgressDisplay.lines(System.err, context.clock())));
            return new StreamLoad(context, stream, run, driver, problems, session);
        } catch (Exception e) {
            driver.close();
            throw new IllegalStateException("The load on " + stream + " cannot start: " + e.getMessage(), e);
        }
    }

    /** Returns the stream's name. */
    String stream() {
        return stream;
    }

    /**
     * Runs a phase for a duration and waits for all its answers.
     *
     * @throws RunStoppedException after a stop signal
     */
    PhaseLoad send(PhaseSpec phase, Duration time) {
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        return send(phase, LoadPhase.ofNanos(!phase.measured(), anchor, anchor.nanos(), time.toNanos()));
    }

    /** Runs a phase with a number of events, see {@link #send(PhaseSpec, Duration)}. */
    PhaseLoad send(PhaseSpec phase, long events) {
        ClockAnchor anchor = ClockAnchor.now(context.clock());
        return send(phase, LoadPhase.ofEvents(!phase.measured(), anchor, anchor.nanos(), events));
    }

    private PhaseLoad send(PhaseSpec phase, LoadPhase time) {
        PhaseRate rate = phase.rate();
        PhaseLoad load = session.sendAndAwait(phase, rate == null ? 0 : rate.eventsPerSecond(0), time, Progress.NONE);
        context.checkStopped();
        load.measurement()
                .errors()
                .forEach(error -> problems.add(error.events() + " events of " + phase.name() + " failed with "
                        + error.errorClass() + ": " + error.firstMessage()));
        return load;
    }

    /**
     * Runs a phase without measuring it and waits until its events are consumed.
     *
     * @throws RunStoppedException after a stop signal
     */
    void warmUp(PhaseSpec phase, Duration time) {
        if (time.isPositive()) {
            send(phase.asWarmup(), time);
            session.drain();
            context.checkStopped();
        }
    }

    /**
     * Measures a turn of several variants, after a short warm-up: with consumers, until the last event is consumed, otherwise
     * until it is acknowledged.
     *
     * @throws IllegalStateException if an event failed, or was not consumed once and in order, so that there is no valid rate
     * @throws RunStoppedException after a stop signal
     */
    MeasuredInterval turn(PhaseSpec phase, Duration time) {
        warmUp(phase, time.dividedBy(WARMUPS_PER_TURN));
        PhaseLoad load = send(phase, time);
        requireConsumed();
        PhaseMeasurement measured = load.measurement();
        Long first = measured.firstIntendedAtMicros();
        Long last = measured.lastAcknowledgedAtMicros();
        long published = measured.publishedEvents();
        long micros = run.streams().consumers() > 0
                ? load.lastDeliveredAtMicros() - load.startedAtMicros()
                : first == null || last == null ? 0 : last - first;
        return new MeasuredInterval(published, Math.ceilDiv(published, phase.eventsPerCall()), micros * 1_000);
    }

    /**
     * Waits until all events so far are consumed.
     *
     * @return what was wrong: events that failed or were not consumed once and in order, and failures of consumers
     * @throws RunStoppedException after a stop signal
     */
    List<String> drain() {
        session.drain();
        context.checkStopped();
        problems.addWrong(session.consumerCounts());
        return problems.all();
    }

    /** @throws IllegalStateException if something was wrong, see {@link #drain()} */
    void requireConsumed() {
        List<String> wrong = drain();
        if (!wrong.isEmpty()) {
            throw new IllegalStateException(stream + ": " + String.join("; ", wrong));
        }
    }

    /** Returns the counts of each consumer. */
    List<ConsumerCounts> consumerCounts() {
        return session.consumerCounts();
    }

    /** Returns the acknowledged events of all phases so far. */
    long publishedEvents() {
        return session.acknowledgedEvents();
    }

    /** Returns the events that all consumers together have received so far. */
    long consumedEvents() {
        return session.consumerCounts().stream()
                .mapToLong(ConsumerCounts::eventsSeen)
                .sum();
    }

    @Override
    public void close() {
        session.close();
        driver.close();
    }
}
