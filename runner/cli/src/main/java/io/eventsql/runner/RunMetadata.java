package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.spec.RunSpec;
import java.sql.SQLException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** The metadata of a run's result. */
record RunMetadata(RunSpec spec, DriverProvider provider, WorkloadRun.RunContext context) {
    /** Returns the identity of the run, which ends now. */
    RunResult.Identity identity(String id, Instant startedAt) {
        return new RunResult.Identity(
                context.workload().name(),
                spec.name(),
                id,
                spec.kind(),
                context.workload().description(),
                context.command(),
                context.gitCommit(),
                startedAt.truncatedTo(ChronoUnit.SECONDS).toString(),
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    }

    RunResult.DriverInfo driver(String version) {
        Guarantees guarantees = provider.guarantees(context.environment());
        return new RunResult.DriverInfo(
                provider.name(), version, guarantees.durability(), guarantees.order(), guarantees.delivery());
    }

    /** Returns the databases of the environment; empty if the run uses other servers. */
    List<DatabaseInfo> readDatabases(LoadClock clock) throws SQLException {
        List<DatabaseInfo> databases = new ArrayList<>();
        if (spec.environment().isPostgres()) {
            for (DatabaseAddress address : context.databases()) {
                databases.add(DatabaseInfo.read(databases.size(), address, clock));
            }
        }
        return databases;
    }

    static RunResult.Machine machine() {
        return RunResult.Machine.ofThis(Runtime.getRuntime().availableProcessors(), null);
    }
}
