package io.eventsql.runner.limits;

import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.EventSqlTarget;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.workload.EventSource;
import java.io.PrintStream;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.LongStream;
import javax.sql.DataSource;

/**
 * The context shared by the benchmarks of a limits run.
 *
 * @param eventSql the library, connected to one database
 * @param dataSource direct access to the same database
 * @param storage how the streams of {@link #streamSpec} keep their events
 * @param run the run's id, 8 lower-case hexadecimal characters; part of the names of its streams and tables
 * @param clock the time source
 * @param stop aborts the run
 * @param progress receives a line per step
 */
public record LimitsContext(
        EventSql eventSql,
        DataSource dataSource,
        Storage storage,
        String run,
        LoadClock clock,
        StopSignal stop,
        PrintStream progress) {

    private static final int EVENTS_WEIGHED = 1_000;

    /** Returns the name of a stream of this run. */
    String stream(String what) {
        return "limits_" + what + "_" + run;
    }

    /** Returns the definition of a stream of this run, with the storage that is measured. */
    StreamSpec streamSpec(String stream) {
        return StreamSpec.of(stream).withStorage(storage);
    }

    /** Returns the mean bytes of an event of this run: those of its value, because it has neither key nor headers. */
    double meanEventBytes() {
        long now = clock.epochMicros();
        return LongStream.range(0, EVENTS_WEIGHED)
                .mapToInt(number -> new BenchmarkEvent(run, 0, false, number, now).encode().length)
                .average()
                .orElseThrow();
    }

    /** Returns a load that publishes events without keys to a stream of this run. */
    LoadContext publishLoad(String stream, int eventsPerCall) {
        return publishLoad(stream, eventsPerCall, List.of());
    }

    /** Returns a load that publishes events with the given keys to a stream of this run. */
    LoadContext publishLoad(String stream, int eventsPerCall, List<String> keys) {
        return load(new EventSqlTarget(eventSql.publisher(), stream), eventsPerCall, keys);
    }

    /** Returns a load that sends events of this run to another target. */
    LoadContext load(PublishTarget target, int eventsPerCall, List<String> keys) {
        EventSource source = new EventSource(run, 0, OptionalInt.empty(), keys);
        return new LoadContext(source, target, eventsPerCall, clock, stop);
    }

    /** @throws RunStoppedException after a stop signal */
    void checkStopped() {
        if (stop.isRaised()) {
            throw new RunStoppedException();
        }
    }

    /** @throws RunStoppedException after a stop signal */
    void sleep(int seconds) {
        long end = clock.nanos() + seconds * 1_000_000_000L;
        for (long left = end - clock.nanos(); left > 0; left = end - clock.nanos()) {
            checkStopped();
            clock.parkNanos(Math.min(left, 100_000_000));
        }
    }
}
