package io.eventsql.runner;

import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.limits.LimitsContext;
import io.eventsql.runner.limits.LimitsParts;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.spec.RunSpec;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/** A run of kind {@code limits}, on one database. */
final class LimitsRun extends MeasuredRun {

    LimitsRun(RunSpec spec, DriverProvider provider, RunContext context) {
        super(spec, provider, context);
    }

    @Override
    RunResult run(Path folder, Consumer<RunResult> written) throws SQLException {
        String id = BenchmarkEvent.randomRun();
        try (Databases databases = Databases.open(context.databases());
                EventSql eventSql = EventSql.builder(databases.dataSources()).build()) {
            ShardInfo shard = eventSql.shards().getFirst();
            List<ResultPart> parts = LimitsParts.measure(new LimitsContext(
                    eventSql,
                    shard.dataSource(),
                    Objects.requireNonNull(spec.limits()),
                    context.environment(),
                    id,
                    clock,
                    context.stop(),
                    System.err::println));
            List<String> found = new ArrayList<>();
            parts.forEach(part -> part.problems().forEach(problem -> found.add(part.name() + ": " + problem)));
            RunResult result = RunResult.ofParts(
                    identity(id),
                    verdict(found),
                    spec,
                    driverInfo("PostgreSQL " + ShardServerInfo.read(shard).serverVersion()),
                    context.machine(),
                    readDatabases(),
                    parts);
            RunFolder.write(folder, result);
            written.accept(result);
            return result;
        }
    }
}
