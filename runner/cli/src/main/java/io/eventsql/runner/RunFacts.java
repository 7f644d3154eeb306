package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.database.DatabaseFacts;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.report.Summary;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.spec.RunSpec;
import java.lang.management.ManagementFactory;
import java.sql.SQLException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** What a run's result says besides what was measured. */
record RunFacts(RunSpec spec, DriverProvider provider, WorkloadRun.Surroundings surroundings) {
    private static final double BYTES_PER_MB = 1e6;

    /** Which run it is; it ends now. */
    RunResult.Identity identity(String id, Instant startedAt) {
        return new RunResult.Identity(
                surroundings.workload().name(),
                spec.name(),
                id,
                spec.kind(),
                surroundings.workload().description(),
                surroundings.command(),
                surroundings.gitCommit(),
                startedAt.truncatedTo(ChronoUnit.SECONDS).toString(),
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    }

    RunResult.DriverFacts driver(Driver driver) {
        Guarantees guarantees = provider.guarantees();
        return new RunResult.DriverFacts(
                provider.name(), driver.version(), guarantees.durability(), guarantees.order(), guarantees.delivery());
    }

    /** Those of the environment; none where the servers are others. */
    List<DatabaseFacts> databases(LoadClock clock) throws SQLException {
        List<DatabaseFacts> databases = new ArrayList<>();
        if (spec.environment().isPostgres()) {
            for (DatabaseAddress address : surroundings.databases()) {
                databases.add(DatabaseFacts.ask(databases.size(), address, clock));
            }
        }
        return databases;
    }

    static RunResult.Machine machine() {
        long memoryMb =
                ManagementFactory.getOperatingSystemMXBean() instanceof com.sun.management.OperatingSystemMXBean system
                        ? Math.round(system.getTotalMemorySize() / BYTES_PER_MB)
                        : 0;
        return new RunResult.Machine(
                Runtime.getRuntime().availableProcessors(),
                memoryMb,
                Summary.Machine.thisSystem(),
                System.getProperty("java.version", "unknown"));
    }
}
