package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.phases.PhasesRun;
import io.eventsql.runner.phases.ProgressDisplay;
import io.eventsql.runner.phases.ReplayerCounts;
import io.eventsql.runner.result.PhaseSummarizer;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.StressAnalysis;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.WorkloadKind;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** A run of kind {@code phases} or {@code search}. */
final class WorkloadRun extends MeasuredRun {

    /** The phases that a session ran, and the result of a search. */
    private record RunPhases(List<PhaseLoad> phases, RunResult.@Nullable SearchResult search) {}

    WorkloadRun(RunSpec spec, DriverProvider provider, RunContext context) {
        super(spec, provider, context);
    }

    @Override
    RunResult run(Path folder, Consumer<RunResult> written) throws Exception {
        try (Driver driver = openDriver()) {
            List<DatabaseInfo> databases = readDatabases();
            LoadSession session = LoadSession.open(
                    driver,
                    new LoadSession.Context(
                            spec, clock, context.stop(), problems, ProgressDisplay.create(System.err, clock)));
            RunSeries series = session.series();
            try (session;
                    ResourceSampler sampler = startSampler(series::originNanos)) {
                RunPhases phases = runPhases(session);
                TimeSeries seconds = series.finish(clock.nanos());
                ResourceSeries resources = sampler.table(seconds.t().size());
                RunResult result = result(driver.version(), databases, session, phases, seconds, resources);
                RunFolder.write(folder, result, series);
                written.accept(result);
                return result;
            }
        }
    }

    private RunPhases runPhases(LoadSession session) {
        RunSpec.SearchSpec search = spec.search();
        if (search == null) {
            return new RunPhases(
                    new PhasesRun(session, context.stop(), problems, this::reportPhase, database()).run(spec.phases()),
                    null);
        }
        SearchRun.Outcome outcome =
                new SearchRun(session, context.stop(), problems, context.out()).run(search, spec.phases());
        return new RunPhases(outcome.phases(), outcome.result());
    }

    /** Returns the database on which snapshots are held. */
    private @Nullable DataSource database() {
        if (!spec.environment().isPostgres()) {
            return null;
        }
        DatabaseAddress address = context.databases().getFirst();
        PGSimpleDataSource database = new PGSimpleDataSource();
        database.setUrl(address.jdbcUrl());
        database.setUser(address.user());
        database.setPassword(address.password());
        return database;
    }

    private void reportPhase(PhaseLoad phase) {
        context.out()
                .accept("Phase " + phase.spec().name() + ": "
                        + phase.measurement().publishedEvents() + " events published, "
                        + Math.round(phase.measurement().publishRate()) + " per second"
                        + (phase.missedEvents() > 0 ? ", " + phase.missedEvents() + " missed" : ""));
    }

    private RunResult result(
            String version,
            List<DatabaseInfo> databases,
            LoadSession session,
            RunPhases phases,
            TimeSeries seconds,
            ResourceSeries resources) {
        PhaseSummarizer summarizer = new PhaseSummarizer(spec);
        List<RunResult.PhaseMetrics> metrics = summarizer.summarize(phases.phases());
        List<ConsumerCounts> consumers = session.consumerCounts();
        List<ReplayerCounts> replayers = session.replayerCounts();
        problems.addWrong(consumers);
        problems.addIfAny(
                metrics.stream().mapToLong(RunResult.PhaseMetrics::eventsFailed).sum(), "events failed to publish");
        return new RunResult(
                RunResult.FORMAT,
                identity(session.run()),
                verdict(problems.all()),
                spec,
                driverInfo(version),
                context.machine(),
                databases,
                metrics,
                consumers,
                replayers,
                null,
                null,
                null,
                phases.search(),
                spec.kind() == WorkloadKind.PHASES
                        ? StressAnalysis.of(spec.phases(), metrics, seconds, resources)
                        : null,
                seconds,
                resources,
                summarizer.histograms());
    }
}
