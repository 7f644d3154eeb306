package io.eventsql.runner;

import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.consumption.Apps;
import io.eventsql.runner.consumption.MergedRunReport;
import io.eventsql.runner.consumption.RebalanceWait;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.EventSqlTarget;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.report.Jvms;
import io.eventsql.runner.report.MergedSeries;
import io.eventsql.runner.report.PhaseResult;
import io.eventsql.runner.report.ProgressDisplay;
import io.eventsql.runner.report.RunnerResult;
import io.eventsql.runner.report.RunnerSeries;
import io.eventsql.runner.report.Summarizer;
import io.eventsql.runner.report.Summary;
import io.eventsql.runner.report.SummaryText;
import io.eventsql.runner.result.SeriesFiles;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.SampledProcess;
import io.eventsql.runner.series.MetricsServer;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.warmup.CompilationTime;
import io.eventsql.runner.workload.EventSource;
import io.eventsql.runner.workload.KeyShare;
import io.eventsql.runner.workload.RunSettings;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** The main job: runners publish, apps consume. This process is one of the runners. */
final class MainJob {
    /** Longer than the lease of a dead member. */
    private static final Duration MEMBERS_TIMEOUT = Duration.ofSeconds(60);

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
        RunSeries series = new RunSeries(0);
        Integer port = setup.metricsPort;
        Consumer<String> problems = System.err::println;
        try (MetricsServer metrics = port == null
                        ? null
                        : MetricsServer.start(port, series, settings.identity().runner());
                Databases databases = Databases.open(setup.databases);
                EventSql eventSql = open(settings, databases.dataSources());
                Apps apps = setup.apps.open();
                ResourceSampler sampler = ResourceSampler.start(
                        setup.processes,
                        settings.identity().runner() == 0 ? setup.databases : List.of(),
                        LoadClock.SYSTEM,
                        series::originNanos,
                        problems)) {
            if (metrics != null) {
                System.err.println("Metrics: port " + metrics.port());
            }
            RunnerResult result = run(eventSql, apps, new RunRecorder(series, sampler));
            ended.accept(result);
            return result;
        }
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

    /** Records the counts and the resource usage of a run. */
    private record RunRecorder(RunSeries series, ResourceSampler sampler) {

        RunnerSeries toSeries() {
            TimeSeries seconds = series.finish(LoadClock.SYSTEM.nanos());
            return RunnerSeries.of(series, seconds, sampler.table(seconds.t().size()));
        }
    }

    private static EventSql open(RunSettings settings, List<DataSource> dataSources) {
        EventSqlBuilder builder = EventSql.builder(dataSources);
        if (!settings.events().keyed()) {
            builder.preferredShard(dataSources.get(settings.identity().runner() % dataSources.size()));
        }
        return builder.build();
    }

    private RunnerResult run(EventSql eventSql, Apps apps, RunRecorder recorder) throws IOException, SQLException {
        RunSettings settings = setup.settings;
        RunSettings.Stream stream = settings.stream();
        createStreamIfAbsent(eventSql, stream);
        List<ShardServerInfo> servers = new ArrayList<>();
        for (ShardInfo shard : eventSql.shards()) {
            servers.add(ShardServerInfo.read(shard));
        }
        RunSettings.Identity identity = settings.identity();
        LoadClock clock = LoadClock.SYSTEM;
        PrintStream err = System.err;
        StartBarrier barrier =
                new StartBarrier(apps.first(), identity.run(), identity.runner(), identity.runners(), clock);
        BenchmarkRun.RunContext context = new BenchmarkRun.RunContext(
                createGenerator(settings, eventSql.publisher(), clock, stop),
                () -> eventSql.positions(stream.name(), stream.consumer()),
                () -> lastHandledAtMicros(apps, identity),
                () -> CompilationTime.now(apps),
                new RebalanceWait(
                        () -> eventSql.consumer(stream.name(), stream.consumer())
                                .state(),
                        apps.count(),
                        clock,
                        MEMBERS_TIMEOUT,
                        stop,
                        System.out::println),
                barrier,
                recorder.series,
                clock,
                stop);
        BenchmarkRun.Outcome outcome =
                new BenchmarkRun(settings, context, System.out, ProgressDisplay.create(err, clock)).run();
        return new RunnerResult(
                settings,
                servers,
                PhaseResult.of(outcome.measured()),
                PhaseResult.of(outcome.warmup()),
                outcome.ending(),
                System.getProperty("java.version", "unknown"),
                recorder.toSeries(),
                barrier.appClock(),
                new Jvms(
                        outcome.warmth(),
                        outcome.measuredCompilation(),
                        ManagementFactory.getRuntimeMXBean().getInputArguments(),
                        optionsOf(apps)));
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

    private static void createStreamIfAbsent(EventSql eventSql, RunSettings.Stream stream) {
        boolean exists =
                eventSql.streams().stream().anyMatch(spec -> spec.name().equals(stream.name()));
        if (!exists) {
            eventSql.createStream(StreamSpec.of(stream.name()).withPartitions(stream.partitions()));
        }
    }

    private static LoadGenerator createGenerator(
            RunSettings settings, EventPublisher publisher, LoadClock clock, StopSignal stop) {
        RunSettings.Load load = settings.load();
        RunSettings.Events events = settings.events();
        int runner = settings.identity().runner();
        Integer bytes = events.eventBytes();
        EventSource source = new EventSource(
                settings.identity().run(),
                runner,
                bytes == null ? OptionalInt.empty() : OptionalInt.of(bytes),
                events.keyed() ? KeyShare.keysOf(runner, events.keys()) : List.of());
        LoadContext context = new LoadContext(
                source, new EventSqlTarget(publisher, settings.stream().name()), load.eventsPerCall(), clock, stop);
        if (load.hasRate()) {
            return new OpenLoop(context, load.eventsPerSecond());
        }
        return load.async() ? Callers.notWaiting(context, load.callers()) : Callers.waiting(context, load.callers());
    }
}
