package io.eventsql.runner;

import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.limits.LimitsContext;
import io.eventsql.runner.limits.LimitsParts;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.spec.RunSpec;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/** Measures one run of kind {@code limits}, on one database, and writes its folder. */
final class LimitsRun {
    private final RunSpec spec;
    private final DriverProvider provider;
    private final WorkloadRun.RunContext context;

    LimitsRun(RunSpec spec, DriverProvider provider, WorkloadRun.RunContext context) {
        this.spec = spec;
        this.provider = provider;
        this.context = context;
    }

    /**
     * Measures the parts.
     *
     * @param folder the output folder
     * @param written receives the result once it is written; connections are still open
     * @throws SQLException if a statement fails
     */
    RunResult run(Path folder, Consumer<RunResult> written) throws SQLException {
        Instant startedAt = Instant.now();
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
                    LoadClock.SYSTEM,
                    context.stop(),
                    System.err::println));
            List<String> problems = new ArrayList<>();
            parts.forEach(part -> part.problems().forEach(problem -> problems.add(part.name() + ": " + problem)));
            boolean interrupted = context.stop().isInterrupted();
            if (context.stop().isRaised()) {
                problems.add(interrupted ? "Interrupted" : "Aborted: no acknowledgement for 60 s");
            }
            RunMetadata metadata = new RunMetadata(spec, provider, context);
            RunResult result = RunResult.ofParts(
                    metadata.identity(id, startedAt),
                    new RunResult.Verdict(problems.isEmpty(), interrupted, problems),
                    spec,
                    metadata.driver("PostgreSQL " + ShardServerInfo.read(shard).serverVersion()),
                    context.machine(),
                    metadata.readDatabases(LoadClock.SYSTEM),
                    parts);
            RunFolder.write(folder, result);
            written.accept(result);
            return result;
        }
    }
}
