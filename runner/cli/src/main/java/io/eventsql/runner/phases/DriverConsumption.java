package io.eventsql.runner.phases;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.spec.RunSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Consumers and replayers of a driver in this process, which check each delivery. For use by one thread. */
final class DriverConsumption implements Consumption {
    private static final long POLL_NANOS = Duration.ofMillis(10).toNanos();

    private final Driver driver;
    private final String run;
    private final LoadClock clock;
    private final RunSeries series;
    private final Problems problems;
    private final List<DeliveryChecker> checkers = new ArrayList<>();
    private final List<Replayer> replayers = new ArrayList<>();
    private final List<AutoCloseable> consumers = new ArrayList<>();

    /** @param run the run's id in the events */
    DriverConsumption(Driver driver, String run, LoadClock clock, RunSeries series, Problems problems) {
        this.driver = driver;
        this.run = run;
        this.clock = clock;
        this.series = series;
        this.problems = problems;
    }

    /** Starts the consumers and replayers of a stream. */
    void start(SessionStream stream, RunSpec.StreamsSpec asked) throws Exception {
        for (int number = 0; number < asked.consumers(); number++) {
            String consumer = LoadSession.consumerName(number);
            DeliveryChecker checker = new DeliveryChecker(run, stream, consumer, clock, series, problems);
            consumers.add(driver.consume(stream.name(), consumer, checker));
            checkers.add(checker);
        }
        for (int number = 0; number < asked.replayers(); number++) {
            replayers.add(Replayer.start(driver, stream, "r" + number, problems));
        }
    }

    @Override
    public boolean await(Duration timeout, StopSignal stop) {
        long started = clock.nanos();
        while (!stop.isRaised()) {
            if (checkers.stream().allMatch(DeliveryChecker::isUpToDate)) {
                return true;
            }
            if (clock.nanos() - started > timeout.toNanos()) {
                return false;
            }
            clock.parkNanos(POLL_NANOS);
        }
        return false;
    }

    @Override
    public List<ConsumerCounts> consumerCounts() {
        return checkers.stream().map(DeliveryChecker::counts).toList();
    }

    @Override
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
                problems.add("Closing a consumer failed: " + e);
            }
        }
        consumers.clear();
    }
}
