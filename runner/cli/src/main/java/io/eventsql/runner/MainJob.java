package io.eventsql.runner;

import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.consumption.AppConsumption;
import io.eventsql.runner.consumption.Apps;
import io.eventsql.runner.consumption.CompilationTime;
import io.eventsql.runner.consumption.MergedRunReport;
import io.eventsql.runner.consumption.RebalanceWait;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.load.EventSqlTarget;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.MetricsServer;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.phases.ProgressDisplay;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.MergedSeries;
import io.eventsql.runner.result.PhaseResult;
import io.eventsql.runner.result.RunnerResult;
import io.eventsql.runner.result.SeriesFiles;
import io.eventsql.runner.result.Summarizer;
import io.eventsql.runner.result.Summary;
import io.eventsql.runner.result.SummaryText;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.SampledProcess;
import io.eventsql.runner.spec.RunSettings;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** The main job: runners publish, apps consume. This process is one of the runners. */
final class MainJob {
    /**
     * What a runner needs.
     *
     * @param settings the settings of the run
     * @param databases the databases, one per shard
     * @param apps the apps that consume
     * @param processes the processes to sample in addition to this one
     * @param metricsPort serves counters while it runs; {@code null} for none
     */
    record Setup(
            RunSettings settings,
            List<DatabaseAddress> databases,
            AppOptions apps,
            List<SampledProcess> processes,
            @Nullable Integer metricsPort) {}

    private final Setup setup;
    private final StopSignal stop;
    private final LoadClock clock = LoadClock.SYSTEM;

    /** @param stop aborts the run */
    MainJob(Setup setup, StopSignal stop) {
        this.setup = setup;
        this.stop = stop;
    }

    /**
     * Publishes and waits until the apps have consumed.
     *
     * @param ended receives the result; connections are still open
     */
    RunnerResult publish(Consumer<RunnerResult> ended) throws IOException, SQLException {
        RunSettings settings = setup.settings;
        int runner = settings.identity().runner();
        Integer port = setup.metricsPort;
        ProgressDisplay progress = ProgressDisplay.create(System.err, clock);
        Consumer<String> problems = System.err::println;
        try (Databases databases = Databases.open(setup.databases);
                EventSql eventSql = open(settings, databases.dataSources());
                Apps apps = setup.apps.open();
                LoadSession session = open(eventSql, progress);
                MetricsServer metrics = port == null ? null : MetricsServer.start(port, session.series(), runner);
                ResourceSampler sampler = ResourceSampler.start(
                        setup.processes,
                        runner == 0 ? setup.databases : List.of(),
                        clock,
                        session.series()::originNanos,
                        problems)) {
            if (metrics != null) {
                System.err.println("Metrics: port " + metrics.port());
            }
            List<ShardServerInfo> servers = new ArrayList<>();
            for (ShardInfo shard : eventSql.shards()) {
                servers.add(ShardServerInfo.read(shard));
            }
            RunSettings.Identity identity = settings.identity();
            StartBarrier barrier =
                    new StartBarrier(apps.first(), identity.run(), identity.runner(), identity.runners(), clock);
            RunSettings.Stream stream = settings.stream();
            MainJobRun.RunContext context = new MainJobRun.RunContext(
                    session,
                    new RebalanceWait(
                            () -> eventSql.consumer(stream.name(), stream.consumer())
                                    .state(),
                            apps.count(),
                            clock,
                            System.out::println),
                    barrier,
                    () -> CompilationTime.now(apps),
                    () -> lastHandledAtMicros(apps, identity),
                    clock,
                    stop);
            MainJobRun.Outcome outcome = new MainJobRun(settings, context, System.out, progress).run();
            TimeSeries seconds = session.series().finish(clock.nanos());
            RunnerResult result = new RunnerResult(
                    settings,
                    servers,
                    PhaseResult.of(outcome.measured()),
                    PhaseResult.of(outcome.warmup()),
                    outcome.ending(),
                    System.getProperty("java.version", "unknown"),
                    RunnerResult.Series.of(
                            session.series(), seconds, sampler.table(seconds.t().size())),
                    barrier.appClock(),
                    new RunnerResult.Jvms(
                            outcome.warmth(),
                            outcome.measuredCompilation(),
                            ManagementFactory.getRuntimeMXBean().getInputArguments(),
                            optionsOf(apps)));
            ended.accept(result);
            return result;
        }
    }

    /** Opens a session on the stream of the settings, which the apps consume. Creates the stream if it is absent. */
    private LoadSession open(EventSql eventSql, ProgressDisplay progress) {
        RunSettings settings = setup.settings;
        RunSettings.Stream stream = settings.stream();
        if (eventSql.streams().stream().noneMatch(spec -> spec.name().equals(stream.name()))) {
            eventSql.createStream(StreamSpec.of(stream.name()).withPartitions(stream.partitions()));
        }
        return LoadSession.ofStream(
                stream.name(),
                new EventSqlTarget(eventSql.publisher(), stream.name()),
                new AppConsumption(
                        () -> eventSql.positions(stream.name(), stream.consumer()), clock, System.out::println),
                new LoadSession.Publisher(
                        settings.identity().run(), settings.identity().runner()),
                new LoadSession.Context(MainJobRun.spec(settings), clock, stop, new Problems(), progress));
    }

    /**
     * Merges the results of all runners and the counts of all apps. Writes the result, the report and the files of the
     * time series.
     *
     * @param runners the results of one run, at least one
     * @param out the file of the result; the others are written next to it
     */
    static Summary summarize(List<RunnerResult> runners, AppOptions appOptions, Summary.Provenance provenance, Path out)
            throws IOException {
        List<String> problems = new ArrayList<>();
        MergedRunReport seen;
        try (Apps apps = appOptions.open()) {
            seen = apps.report(runners.getFirst().run(), problems::add);
        }
        Summarizer summarizer = new Summarizer(runners, seen, problems);
        MergedSeries series = summarizer.series();
        Summary summary = summarizer.summarize(series, provenance);
        JsonFiles.write(out, summary);
        JsonFiles.write(out.resolveSibling("report.txt"), String.join("\n", SummaryText.of(summary)) + "\n");
        new SeriesFiles(
                        summary.series(),
                        summary.resources(),
                        TimeUnit.SECONDS.toMicros(series.firstSecond()),
                        series::publishMicros,
                        series::endToEndMicros)
                .write(Objects.requireNonNull(out.toAbsolutePath().getParent()));
        return summary;
    }

    private static EventSql open(RunSettings settings, List<DataSource> dataSources) {
        EventSqlBuilder builder = EventSql.builder(dataSources);
        if (!settings.events().keyed()) {
            builder.preferredShard(dataSources.get(settings.identity().runner() % dataSources.size()));
        }
        return builder.build();
    }

    private static List<String> optionsOf(Apps apps) {
        try {
            List<String> options = apps.first().jvm().options();
            return options == null ? List.of() : options;
        } catch (IOException e) {
            System.err.println(e.getMessage());
            return List.of();
        }
    }

    private static OptionalLong lastHandledAtMicros(Apps apps, RunSettings.Identity identity) {
        try {
            return apps.lastHandledAtMicros(identity.run(), identity.runner());
        } catch (IOException e) {
            System.err.println(e.getMessage());
            return OptionalLong.empty();
        }
    }
}
