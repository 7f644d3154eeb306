package io.eventsql.runner.queries;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.WorkloadKind;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.util.EnvironmentInformation;

/**
 * The result of the queries, in the form of every workload's.
 *
 * @param command the command that reproduces the run
 * @param gitCommit the measured commit
 * @param cpus the processors of the machine
 * @param settings what was asked for, by name
 */
record QueriesResult(String command, String gitCommit, int cpus, Map<String, String> settings) {
    private static final String NAME = "queries";
    private static final String DESCRIPTION =
            "Queries of Apache Flink over a stream, next to what the library's consumer, the reader and Flink's source alone read.";

    /** Returns the result of a run that ends now. */
    RunResult of(Instant startedAt, DatabaseInfo database, List<ResultPart> parts) {
        List<String> problems = new ArrayList<>();
        parts.forEach(part -> part.problems().forEach(problem -> problems.add(part.name() + ": " + problem)));
        return RunResult.ofParts(
                new RunResult.Identity(
                        NAME,
                        NAME,
                        BenchmarkEvent.randomRun(),
                        WorkloadKind.QUERIES,
                        DESCRIPTION,
                        command,
                        gitCommit,
                        startedAt.truncatedTo(ChronoUnit.SECONDS).toString(),
                        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString()),
                new RunResult.Verdict(problems.isEmpty(), false, problems),
                RunSpec.ofQueries(NAME, "flink", settings),
                new RunResult.DriverInfo(
                        "flink",
                        EnvironmentInformation.getVersion(),
                        "committed by PostgreSQL, subject to its fsync and synchronous_commit",
                        "per key",
                        "not checked here: results are dropped"),
                RunResult.Machine.ofThis(cpus, null),
                List.of(database),
                parts);
    }
}
