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
 * What every part of a limits run works with.
 *
 * @param eventSql the library, over one database
 * @param dataSource the same database, past the library
 * @param run the run's id, 8 lower-case hexadecimal characters; part of the names of its streams
 * @param clock the time
 * @param stop ends the run early
 * @param progress takes a line for each step
 */
public record LimitsContext(
        EventSql eventSql, DataSource dataSource, String run, LoadClock clock, StopSignal stop, PrintStream progress) {

    /** The name of a stream of this run. */
    String stream(String what) {
        return "limits_" + what + "_" + run;
    }

    /** What publishes to a stream of this run, events without keys. */
    LoadContext publishing(String stream, int eventsPerCall) {
        return publishing(stream, eventsPerCall, List.of());
    }

    /** The same, events with these keys. */
    LoadContext publishing(String stream, int eventsPerCall, List<String> keys) {
        return loading(new EventSqlTarget(eventSql.publisher(), stream), eventsPerCall, keys);
    }

    /** What sends events of this run elsewhere. */
    LoadContext loading(PublishTarget target, int eventsPerCall, List<String> keys) {
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
