package io.eventsql.runner;

import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.InvalidSettingException;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.consumption.Apps;
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
import io.eventsql.runner.report.PhaseResult;
import io.eventsql.runner.report.ProgressDisplay;
import io.eventsql.runner.report.RunnerResult;
import io.eventsql.runner.report.RunnerSeries;
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
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Publishes the events of a run and writes the measurements. */
@Command(
        name = "publish",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Publishes events, waits until they are consumed, and reports both.",
            "With several apps, starts as soon as they share the consumer's partitions.",
            "Each option can also be set in the environment: --events-rate as EVENTS_RATE, and so on.",
            "Configure the databases in the environment: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql), DB0_USER (eventsql),"
                    + " DB0_PASSWORD, likewise DB1_..., DB2_...; or DB_URLS with DB_USER and DB_PASSWORD.",
            ""
        },
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:all events published and consumed",
            "1:an event failed, the run timed out or aborted",
            "2:invalid input"
        },
        footerHeading = "%nExamples:%n",
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner publish --events-rate 1000 --events-to-publish 60000",
            "  DB_URLS=jdbc:postgresql://a/eventsql,jdbc:postgresql://b/eventsql DB_PASSWORD=... runner --keyed",
            "  EVENTS_RATE=0 CALLERS=4 EVENTS_BATCH_SIZE=100 DB0_HOST=localhost DB0_PASSWORD=... runner"
        })
final class PublishCommand implements Callable<Integer> {
    /** Longer than the lease of a dead member. */
    private static final Duration MEMBERS_TIMEOUT = Duration.ofSeconds(60);

    private final Map<String, String> environment;

    @Spec
    private @Nullable CommandSpec spec;

    @Mixin
    private PublishOptions options = new PublishOptions();

    @Mixin
    private final AppOptions appOptions = new AppOptions();

    @Option(
            names = "--db-urls",
            paramLabel = "URLS",
            description = "comma-separated JDBC URLs of the databases, instead of DB0_HOST and so on")
    private @Nullable String dbUrls;

    @Option(names = "--db-user", paramLabel = "NAME", description = "database user for --db-urls (default: eventsql)")
    private @Nullable String dbUser;

    @Option(
            names = "--process",
            paramLabel = "NAME=PID",
            split = ",",
            description = {
                "process to sample every second, including its children, such as database-0=1234;",
                "or a container: database-0=docker:CONTAINER; repeatable (environment: PROCESSES)"
            })
    private List<String> processes = new ArrayList<>();

    @Option(
            names = "--metrics-port",
            paramLabel = "PORT",
            description = {
                "serves counters for Prometheus at /metrics on this port while it runs, on all addresses",
                "(environment: METRICS_PORT; default: off)"
            })
    private @Nullable Integer metricsPort;

    PublishCommand(Map<String, String> environment) {
        this.environment = Map.copyOf(environment);
    }

    @Override
    public Integer call() throws IOException, SQLException {
        CommandSpec command = Objects.requireNonNull(spec);
        RunSettings settings = options.settings(command.commandLine());
        List<DatabaseAddress> addresses;
        try {
            Map<String, String> all = mergedEnvironment();
            addresses = DatabaseVariables.read(new Variables(all::get));
        } catch (InvalidSettingException e) {
            throw new ParameterException(command.commandLine(), e.getMessage(), e);
        }
        List<SampledProcess> sampled = parseProcesses(command.commandLine());
        StopSignal stop = new StopSignal();
        RunSeries series = new RunSeries(0);
        Integer port = metricsPort;
        try (MetricsServer metrics = port == null
                        ? null
                        : MetricsServer.start(port, series, settings.identity().runner());
                ShutdownHook hook = ShutdownHook.register(stop);
                Databases databases = Databases.open(addresses);
                EventSql eventSql = open(settings, databases.dataSources());
                Apps apps = appOptions.open();
                ResourceSampler sampler = ResourceSampler.start(
                        sampled,
                        settings.identity().runner() == 0 ? addresses : List.of(),
                        LoadClock.SYSTEM,
                        series::originNanos,
                        PublishCommand::printError)) {
            if (metrics != null) {
                System.err.println("Metrics: port " + metrics.port());
            }
            RunnerResult result = run(settings, eventSql, apps, new RunRecorder(series, sampler), stop);
            JsonFiles.write(options.resultFile(), result);
            System.err.println("Result: " + options.resultFile());
            hook.release();
            return result.ending().succeeded() && result.failedEvents() == 0 ? Runner.OK : Runner.FAILED;
        }
    }

    /** Records the counts and the resource usage of a run. */
    private record RunRecorder(RunSeries series, ResourceSampler sampler) {

        RunnerSeries toSeries() {
            TimeSeries seconds = series.finish(LoadClock.SYSTEM.nanos());
            return RunnerSeries.of(series, seconds, sampler.table(seconds.t().size()));
        }
    }

    private static void printError(String line) {
        System.err.println(line);
    }

    private List<SampledProcess> parseProcesses(CommandLine commandLine) {
        try {
            return processes.stream().map(SampledProcess::of).toList();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandLine, "--process (PROCESSES) " + e.getMessage(), e);
        }
    }

    private Map<String, String> mergedEnvironment() {
        Map<String, String> all = new HashMap<>(environment);
        if (dbUrls != null) {
            all.put("DB_URLS", dbUrls);
        }
        if (dbUser != null) {
            all.put("DB_USER", dbUser);
        }
        return all;
    }

    private static EventSql open(RunSettings settings, List<DataSource> dataSources) {
        EventSqlBuilder builder = EventSql.builder(dataSources);
        if (!settings.events().keyed()) {
            builder.preferredShard(dataSources.get(settings.identity().runner() % dataSources.size()));
        }
        return builder.build();
    }

    private static RunnerResult run(
            RunSettings settings, EventSql eventSql, Apps apps, RunRecorder recorder, StopSignal stop)
            throws IOException, SQLException {
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
