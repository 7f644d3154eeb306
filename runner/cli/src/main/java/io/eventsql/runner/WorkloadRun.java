package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.phases.PhasesRun;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.phases.ReplayerCounts;
import io.eventsql.runner.report.ProgressDisplay;
import io.eventsql.runner.result.PhaseSummarizer;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.StressAnalysis;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.sample.SampledProcess;
import io.eventsql.runner.search.SearchRun;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.SearchSpec;
import io.eventsql.runner.spec.Workload;
import io.eventsql.runner.spec.WorkloadKind;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** Measures one run of kind {@code phases} or {@code search} and writes its folder. */
final class WorkloadRun {

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

    /** The phases that a session ran, and the result of a search. */
    private record RunPhases(List<PhaseLoad> phases, RunResult.@Nullable SearchResult search) {}

    private final RunSpec spec;
    private final DriverProvider provider;
    private final RunContext context;
    private final RunMetadata metadata;
    private final LoadClock clock = LoadClock.SYSTEM;
    private final Problems problems = new Problems();

    WorkloadRun(RunSpec spec, DriverProvider provider, RunContext context) {
        this.spec = spec;
        this.provider = provider;
        this.context = context;
        this.metadata = new RunMetadata(spec, provider, context);
    }

    /**
     * Runs the phases.
     *
     * @param folder the output folder
     * @param written receives the result once it is written; connections may still be open
     * @throws Exception if the run aborts without a result
     */
    RunResult run(Path folder, Consumer<RunResult> written) throws Exception {
        Instant startedAt = Instant.now();
        try (Driver driver = provider.open(new DriverSettings(spec.system().driverOptions(), context.environment))) {
            List<DatabaseInfo> databases = metadata.readDatabases(clock);
            LoadSession session = LoadSession.open(
                    driver,
                    new LoadSession.Context(
                            spec, clock, context.stop, problems, ProgressDisplay.create(System.err, clock)));
            RunSeries series = session.series();
            try (session;
                    ResourceSampler sampler = ResourceSampler.start(
                            context.processes,
                            spec.environment().isPostgres() ? context.databases : List.of(),
                            clock,
                            series::originNanos,
                            problems::add)) {
                RunPhases phases = runPhases(session);
                TimeSeries seconds = series.finish(clock.nanos());
                ResourceSeries resources = sampler.table(seconds.t().size());
                RunResult result =
                        result(driver, databases, session, phases, new RunMeasurement(seconds, resources, startedAt));
                RunFolder.write(folder, result, series);
                written.accept(result);
                return result;
            }
        }
    }

    private record RunMeasurement(TimeSeries seconds, ResourceSeries resources, Instant startedAt) {}

    private RunPhases runPhases(LoadSession session) {
        SearchSpec search = spec.search();
        if (search == null) {
            return new RunPhases(
                    new PhasesRun(session, context.stop, problems, this::reportPhase, database()).run(spec.phases()),
                    null);
        }
        SearchRun.Outcome outcome =
                new SearchRun(session, context.stop, problems, context.out).run(search, spec.phases());
        return new RunPhases(outcome.phases(), outcome.result());
    }

    /** Returns the database on which snapshots are held. */
    private @Nullable DataSource database() {
        if (!spec.environment().isPostgres()) {
            return null;
        }
        DatabaseAddress address = context.databases.getFirst();
        PGSimpleDataSource database = new PGSimpleDataSource();
        database.setUrl(address.jdbcUrl());
        database.setUser(address.user());
        database.setPassword(address.password());
        return database;
    }

    private void reportPhase(PhaseLoad phase) {
        context.out.accept("Phase " + phase.spec().name() + ": "
                + phase.measurement().publishedEvents() + " events published, "
                + Math.round(phase.measurement().publishRate()) + " per second"
                + (phase.missedEvents() > 0 ? ", " + phase.missedEvents() + " missed" : ""));
    }

    private RunResult result(
            Driver driver, List<DatabaseInfo> databases, LoadSession session, RunPhases phases, RunMeasurement measured)
            throws Exception {
        PhaseSummarizer summarizer = new PhaseSummarizer(spec);
        List<RunResult.PhaseMetrics> metrics = summarizer.summarize(phases.phases());
        List<ConsumerCounts> consumers = session.consumerCounts();
        List<ReplayerCounts> replayers = session.replayerCounts();
        addProblems(metrics, consumers);
        boolean interrupted = context.stop.isInterrupted();
        List<String> found = problems.all();
        return new RunResult(
                RunResult.FORMAT,
                metadata.identity(session.run(), measured.startedAt),
                new RunResult.Verdict(found.isEmpty() && !interrupted, interrupted, found),
                spec,
                metadata.driver(driver.version()),
                context.machine,
                databases,
                metrics,
                consumers,
                replayers,
                null,
                null,
                null,
                phases.search(),
                spec.kind() == WorkloadKind.PHASES
                        ? StressAnalysis.of(spec.phases(), metrics, measured.seconds, measured.resources)
                        : null,
                measured.seconds,
                measured.resources,
                summarizer.histograms());
    }

    private void addProblems(List<RunResult.PhaseMetrics> phases, List<ConsumerCounts> consumers) {
        problems.addWrong(consumers);
        problems.addIfAny(
                phases.stream().mapToLong(RunResult.PhaseMetrics::eventsFailed).sum(), "events failed to publish");
        if (context.stop.reason() == StopSignal.Reason.NO_PROGRESS) {
            problems.add("Aborted: no acknowledgement for 60 s");
        }
        if (context.stop.isInterrupted()) {
            problems.add("Interrupted");
        }
    }
}
