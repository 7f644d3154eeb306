package io.eventsql.runner.limits;

import io.eventsql.EventSql;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.EventSqlTarget;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.workload.EventSource;
import java.io.PrintStream;
import java.util.List;
import java.util.OptionalInt;
import javax.sql.DataSource;

/**
 * The context shared by the benchmarks of a limits run.
 *
 * @param eventSql the library, connected to one database
 * @param dataSource direct access to the same database
 * @param run the run's id, 8 lower-case hexadecimal characters; part of the names of its streams and tables
 * @param clock the time source
 * @param stop aborts the run
 * @param progress receives a line per step
 */
public record LimitsContext(
        EventSql eventSql, DataSource dataSource, String run, LoadClock clock, StopSignal stop, PrintStream progress) {

    /** Returns the name of a stream of this run. */
    String stream(String what) {
        return "limits_" + what + "_" + run;
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
}
