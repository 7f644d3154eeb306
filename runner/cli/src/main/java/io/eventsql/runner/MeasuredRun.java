package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.SampledProcess;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.Workload;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** One run of a workload by a driver. What the kinds of runs share. */
abstract class MeasuredRun {

    /**
     * The context shared by all runs of a command.
     *
     * @param workload the workload of the runs
     * @param environment the environment variables that configure the servers
     * @param databases the databases of the environment
     * @param processes the processes to sample in addition to this one
     * @param command the command that reproduces the run
     * @param gitCommit the measured commit
     * @param machine the machine of this process
     * @param stop aborts a run
     * @param out receives human-readable lines
     */
    record RunContext(
            Workload workload,
            Map<String, String> environment,
            List<DatabaseAddress> databases,
            List<SampledProcess> processes,
            String command,
            String gitCommit,
            RunResult.Machine machine,
            StopSignal stop,
            Consumer<String> out) {}

    final RunSpec spec;
    final RunContext context;
    final LoadClock clock = LoadClock.SYSTEM;
    final Problems problems = new Problems();
    private final DriverProvider provider;
    private final Instant startedAt = Instant.now();

    MeasuredRun(RunSpec spec, DriverProvider provider, RunContext context) {
        this.spec = spec;
        this.provider = provider;
        this.context = context;
    }

    /**
     * Measures the run and writes its folder.
     *
     * @param folder the output folder
     * @param written receives the result once all files are written; connections may still be open
     * @throws Exception if the run aborts without a result
     */
    abstract RunResult run(Path folder, Consumer<RunResult> written) throws Exception;

    Driver openDriver() throws Exception {
        return provider.open(new DriverSettings(spec.system().driverOptions(), context.environment));
    }

    /** @param originNanos the start of second 0 on the monotonic clock; {@link Long#MAX_VALUE} while unknown */
    ResourceSampler startSampler(LongSupplier originNanos) {
        return ResourceSampler.start(
                context.processes,
                spec.environment().isPostgres() ? context.databases : List.of(),
                clock,
                originNanos,
                problems::add);
    }

    /** Returns the identity of the run, which ends now. */
    RunResult.Identity identity(String id) {
        return new RunResult.Identity(
                context.workload.name(),
                spec.name(),
                id,
                spec.kind(),
                context.workload.description(),
                context.command,
                context.gitCommit,
                startedAt.truncatedTo(ChronoUnit.SECONDS).toString(),
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    }

    /** @param found the problems, to which the reason of a stop signal is added */
    RunResult.Verdict verdict(List<String> found) {
        List<String> all = new ArrayList<>(found);
        boolean interrupted = context.stop.isInterrupted();
        if (context.stop.isRaised()) {
            all.add(interrupted ? "Interrupted" : "Aborted: no acknowledgement for 60 s");
        }
        return new RunResult.Verdict(all.isEmpty(), interrupted, all);
    }

    RunResult.DriverInfo driverInfo(String version) {
        Guarantees guarantees = provider.guarantees(context.environment);
        return new RunResult.DriverInfo(
                provider.name(), version, guarantees.durability(), guarantees.order(), guarantees.delivery());
    }

    /** Returns the databases of the environment; empty if the run uses other servers. */
    List<DatabaseInfo> readDatabases() throws SQLException {
        List<DatabaseInfo> databases = new ArrayList<>();
        if (spec.environment().isPostgres()) {
            for (DatabaseAddress address : context.databases) {
                databases.add(DatabaseInfo.read(databases.size(), address, clock));
            }
        }
        return databases;
    }
}
