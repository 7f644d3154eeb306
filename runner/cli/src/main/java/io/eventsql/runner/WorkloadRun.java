package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.database.DatabaseFacts;
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
import io.eventsql.runner.result.ResultMaker;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.StressReading;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.sample.SampledProcess;
import io.eventsql.runner.search.SearchRun;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.spec.Kind;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.SearchSpec;
import io.eventsql.runner.spec.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Measures one run of the kinds {@code phases} and {@code search}, and writes its folder. */
final class WorkloadRun {

    /**
     * What is the same for all runs of a command.
     *
     * @param workload what they belong to
     * @param environment the variables that say where servers are
     * @param databases those of the environment
     * @param processes what is looked at besides this process
     * @param command how to measure it again
     * @param gitCommit what is measured
     * @param stop ends a run early
     * @param out takes lines for people
     */
    record Surroundings(
            Workload workload,
            Map<String, String> environment,
            List<DatabaseAddress> databases,
            List<SampledProcess> processes,
            String command,
            String gitCommit,
            StopSignal stop,
            Consumer<String> out) {}

    /** What was played on a session. */
    private record Played(List<PhaseLoad> phases, RunResult.@Nullable SearchFigures search) {}

    private final RunSpec spec;
    private final DriverProvider provider;
    private final Surroundings surroundings;
    private final RunFacts facts;
    private final LoadClock clock = LoadClock.SYSTEM;
    private final Problems problems = new Problems();

    WorkloadRun(RunSpec spec, DriverProvider provider, Surroundings surroundings) {
        this.spec = spec;
        this.provider = provider;
        this.surroundings = surroundings;
        this.facts = new RunFacts(spec, provider, surroundings);
    }

    /**
     * Measures it.
     *
     * @param folder takes the result
     * @param written hears of the result once it is written; connections may still be open
     * @throws Exception if it breaks off without a result
     */
    RunResult run(Path folder, Consumer<RunResult> written) throws Exception {
        Instant startedAt = Instant.now();
        try (Driver driver =
                provider.open(new DriverSettings(spec.system().driverOptions(), surroundings.environment))) {
            List<DatabaseFacts> databases = facts.databases(clock);
            LoadSession session = LoadSession.open(new LoadSession.Setup(
                    spec, driver, clock, surroundings.stop, problems, ProgressDisplay.on(System.err, clock)));
            RunSeries series = session.series();
            try (session;
                    ResourceSampler sampler = ResourceSampler.start(
                            surroundings.processes,
                            spec.environment().isPostgres() ? surroundings.databases : List.of(),
                            clock,
                            series::originNanos,
                            problems::add)) {
                Played played = play(session);
                TimeSeries seconds = series.table(clock.nanos());
                ResourceSeries resources = sampler.table(seconds.t().size());
                RunResult result =
                        result(driver, databases, session, played, new Measured(seconds, resources, startedAt));
                RunFolder.write(folder, result, series);
                written.accept(result);
                return result;
            }
        }
    }

    private record Measured(TimeSeries seconds, ResourceSeries resources, Instant startedAt) {}

    private Played play(LoadSession session) {
        SearchSpec search = spec.search();
        if (search == null) {
            return new Played(new PhasesRun(session, surroundings.stop, problems, this::tell).run(spec.phases()), null);
        }
        SearchRun.Found found =
                new SearchRun(session, surroundings.stop, problems, surroundings.out).run(search, spec.phases());
        return new Played(found.phases(), found.figures());
    }

    private void tell(PhaseLoad phase) {
        surroundings.out.accept("Phase " + phase.spec().name() + ": "
                + phase.measurement().publishedEvents() + " events published, "
                + Math.round(PhasesRun.publishRate(phase.measurement())) + " per second"
                + (phase.missedEvents() > 0 ? ", " + phase.missedEvents() + " missed" : ""));
    }

    private RunResult result(
            Driver driver, List<DatabaseFacts> databases, LoadSession session, Played played, Measured measured)
            throws IOException {
        ResultMaker maker = new ResultMaker(spec);
        List<RunResult.PhaseFigures> figures = maker.figures(played.phases());
        List<ConsumerCounts> consumers = session.consumerCounts();
        List<ReplayerCounts> replayers = session.replayerCounts();
        judge(figures, consumers);
        boolean interrupted = surroundings.stop.isInterrupted();
        List<String> found = problems.found();
        return new RunResult(
                RunResult.FORMAT,
                facts.identity(session.run(), measured.startedAt),
                new RunResult.Verdict(found.isEmpty() && !interrupted, interrupted, found),
                spec,
                facts.driver(driver),
                RunFacts.machine(),
                databases,
                figures,
                consumers,
                replayers,
                played.search(),
                spec.kind() == Kind.PHASES
                        ? StressReading.of(spec.phases(), figures, measured.seconds, measured.resources)
                        : null,
                measured.seconds,
                measured.resources,
                maker.histograms());
    }

    private void judge(List<RunResult.PhaseFigures> phases, List<ConsumerCounts> consumers) {
        problems.addIfAny(
                consumers.stream().mapToLong(ConsumerCounts::eventsLost).sum(), "events were lost");
        problems.addIfAny(
                consumers.stream().mapToLong(ConsumerCounts::eventsDuplicated).sum(), "events were delivered again");
        problems.addIfAny(
                consumers.stream().mapToLong(ConsumerCounts::orderViolations).sum(),
                "events were out of order for their key");
        problems.addIfAny(
                phases.stream().mapToLong(RunResult.PhaseFigures::eventsFailed).sum(), "events failed to publish");
        if (surroundings.stop.reason() == StopSignal.Reason.NO_PROGRESS) {
            problems.add("It was given up because nothing was acknowledged any more");
        }
        if (surroundings.stop.isInterrupted()) {
            problems.add("It was interrupted");
        }
    }
}
