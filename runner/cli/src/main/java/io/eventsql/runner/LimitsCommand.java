package io.eventsql.runner;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.limits.LimitsBenchmark;
import io.eventsql.runner.limits.LimitsContext;
import io.eventsql.runner.limits.LimitsResult;
import io.eventsql.runner.limits.LimitsRun;
import io.eventsql.runner.limits.LimitsSettings;
import io.eventsql.runner.limits.LimitsText;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.report.Summary;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Measures how close the library comes to what PostgreSQL and slow handlers allow, on one database. */
@Command(
        name = "limits",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Measures how close the library comes to what PostgreSQL and slow handlers allow, on one database:",
            "  append    the same events through binary COPY into a stream's tables, and through the library",
            "  read      reading a partition in pages of 10 to 10,000 events, never analyzed and analyzed",
            "  snapshot  publish latency at a steady rate, without and with an old snapshot held open",
            "  handlers  a handler that takes 10 ms on one partition, one event and several keys at a time",
            "  transactions  publishing inside Spring's transactions next to a plain row in them; the relay's rate",
            "  outbox    publishing inside transactions, and plainly beside it, without and with an old snapshot",
            "Each option can also be given in the environment: --read-events as READ_EVENTS, and so on.",
            "The database is given there only: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql), DB0_USER (eventsql),"
                    + " DB0_PASSWORD; or DB_URLS with DB_USER and DB_PASSWORD. New streams, limits_..., stay in it.",
            ""
        },
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:measured",
            "1:an event failed, was lost, duplicated or out of order, or the run broke off",
            "2:wrong input"
        },
        footerHeading = "%nExamples:%n",
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only append,read --rounds 5",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only snapshot --snapshot-seconds 600",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only handlers --handlers-concurrency 100",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only outbox --outbox-seconds 600"
        })
final class LimitsCommand implements Callable<Integer> {
    private static final int ROUNDS_MAX = 1_000;
    private static final double ROUND_MIN_SECONDS = 0.05;
    private static final int ROUND_MAX_SECONDS = 3_600;
    private static final int READ_EVENTS_MIN = 1_000;
    private static final int READ_EVENTS_MAX = 1_000_000_000;
    private static final int HANDLERS_EVENTS_MAX = 10_000_000;

    private final Map<String, String> environment;

    @Spec
    private @Nullable CommandSpec spec;

    @Option(
            names = "--only",
            paramLabel = "PART",
            split = ",",
            description =
                    "measure only append, read, snapshot, handlers, transactions or outbox; several with commas (default: all)")
    private List<String> only = new ArrayList<>();

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "3",
            description =
                    "measured rounds of append, read and transactions, after one to warm up (default: ${DEFAULT-VALUE})")
    private int rounds;

    @Option(
            names = "--round-seconds",
            paramLabel = "N",
            defaultValue = "3",
            description = "length of everything in a round (default: ${DEFAULT-VALUE})")
    private double roundSeconds;

    @Option(
            names = "--read-events",
            paramLabel = "N",
            defaultValue = "300000",
            description = "events in the partition that is read (default: ${DEFAULT-VALUE})")
    private int readEvents;

    @Option(
            names = "--snapshot-seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = {
                "length of each of the four runs of the part snapshot: without and with, 1 and 10 partitions",
                "(default: ${DEFAULT-VALUE}; long form: 600)"
            })
    private int snapshotSeconds;

    @Option(
            names = "--snapshot-rate",
            paramLabel = "N",
            defaultValue = "2000",
            description = "events per second in the part snapshot, one a call (default: ${DEFAULT-VALUE})")
    private long snapshotRate;

    @Option(
            names = "--warmup-seconds",
            paramLabel = "N",
            defaultValue = "5",
            description =
                    "the same load before each run of snapshot and outbox, not measured (default: ${DEFAULT-VALUE})")
    private int warmupSeconds;

    @Option(
            names = "--handlers-events",
            paramLabel = "N",
            defaultValue = "20000",
            description =
                    "events handled with several keys at a time, in the part handlers (default: ${DEFAULT-VALUE})")
    private int handlersEvents;

    @Option(
            names = "--handlers-sequential-events",
            paramLabel = "N",
            defaultValue = "500",
            description = "events handled one at a time there, at most 100 a second (default: ${DEFAULT-VALUE})")
    private int handlersSequentialEvents;

    @Option(
            names = "--handlers-concurrency",
            paramLabel = "N",
            defaultValue = "50",
            description = "keys handled at the same time there, of 1,000 (default: ${DEFAULT-VALUE})")
    private int handlersConcurrency;

    @Option(
            names = "--outbox-seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = {
                "length of each of the two runs of the part outbox: without and with",
                "(default: ${DEFAULT-VALUE}; long form: 600)"
            })
    private int outboxSeconds;

    @Option(
            names = "--outbox-rate",
            paramLabel = "N",
            defaultValue = "500",
            description =
                    "transactions per second there, of one event, and as many plain publishes (default: ${DEFAULT-VALUE})")
    private long outboxRate;

    @Mixin
    private final ResultOptions resultOptions = new ResultOptions();

    LimitsCommand(Map<String, String> environment) {
        this.environment = Map.copyOf(environment);
    }

    @Override
    public Integer call() throws SQLException {
        CommandSpec commandSpec = Objects.requireNonNull(spec);
        LimitsSettings settings = settings(new OptionValidator(commandSpec.commandLine()));
        DatabaseAddress address = address(commandSpec);
        StopSignal stop = new StopSignal();
        try (ShutdownHook hook = ShutdownHook.register(stop);
                Databases databases = Databases.open(List.of(address));
                EventSql eventSql = EventSql.builder(databases.dataSources()).build()) {
            LimitsResult result = measure(settings, eventSql, stop);
            List<String> report = LimitsText.of(result);
            JsonFiles.write(resultOptions.report(), String.join("\n", report) + "\n");
            JsonFiles.write(resultOptions.out(), result);
            hook.release();
            commandSpec.commandLine().getOut().println();
            report.forEach(commandSpec.commandLine().getOut()::println);
            return result.passed() ? Runner.OK : Runner.FAILED;
        }
    }

    /** @throws ParameterException if a value is out of range; names the option and the limit */
    LimitsSettings settings(OptionValidator validator) {
        validator.requireRange("--rounds", rounds, 1, ROUNDS_MAX);
        validator.require(
                roundSeconds >= ROUND_MIN_SECONDS && roundSeconds <= ROUND_MAX_SECONDS,
                "--round-seconds",
                "must be between " + ROUND_MIN_SECONDS + " and " + ROUND_MAX_SECONDS + ", but is " + roundSeconds);
        validator.requireRange("--read-events", readEvents, READ_EVENTS_MIN, READ_EVENTS_MAX);
        validator.requireRange("--snapshot-seconds", snapshotSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--snapshot-rate", snapshotRate, 1, PublishOptions.EVENTS_RATE_MAX);
        validator.requireRange("--warmup-seconds", warmupSeconds, 0, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--handlers-events", handlersEvents, 1, HANDLERS_EVENTS_MAX);
        validator.requireRange("--handlers-sequential-events", handlersSequentialEvents, 1, HANDLERS_EVENTS_MAX);
        validator.requireRange("--handlers-concurrency", handlersConcurrency, 1, ConsumerSpec.KEY_CONCURRENCY_MAX);
        validator.requireRange("--outbox-seconds", outboxSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--outbox-rate", outboxRate, 1, PublishOptions.EVENTS_RATE_MAX);
        return new LimitsSettings(
                benchmarks(validator),
                new LimitsSettings.Rounds(rounds, roundSeconds),
                readEvents,
                new LimitsSettings.Snapshot(snapshotSeconds, snapshotRate, warmupSeconds),
                new LimitsSettings.Handlers(handlersEvents, handlersSequentialEvents, handlersConcurrency),
                new LimitsSettings.OutboxLoad(outboxSeconds, outboxRate, warmupSeconds));
    }

    private List<LimitsBenchmark> benchmarks(OptionValidator validator) {
        if (only.isEmpty()) {
            return List.of(LimitsBenchmark.values());
        }
        return only.stream()
                .map(word -> LimitsBenchmark.of(word)
                        .orElseThrow(() -> validator.invalid(
                                "--only",
                                "must be one of " + String.join(", ", LimitsBenchmark.labels()) + ", but is '" + word
                                        + "'")))
                .distinct()
                .sorted()
                .toList();
    }

    private DatabaseAddress address(CommandSpec commandSpec) {
        try {
            List<DatabaseAddress> addresses = DatabaseVariables.read(new Variables(environment::get));
            if (addresses.size() > 1) {
                throw new IllegalArgumentException("One database is measured, but " + addresses.size() + " are given");
            }
            return addresses.getFirst();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandSpec.commandLine(), e.getMessage(), e);
        }
    }

    private LimitsResult measure(LimitsSettings settings, EventSql eventSql, StopSignal stop) throws SQLException {
        ShardInfo shard = eventSql.shards().getFirst();
        ShardServerInfo server = ShardServerInfo.read(shard);
        String run = BenchmarkEvent.randomRun();
        LimitsContext bench = new LimitsContext(eventSql, shard.dataSource(), run, LoadClock.SYSTEM, stop, System.err);
        LimitsRun.Measurements measurements = new LimitsRun(bench, settings).measure();
        return new LimitsResult(
                run,
                stop.isRaised(),
                new Summary.Machine(
                        server.fsync(),
                        server.synchronousCommit(),
                        server.serverVersion(),
                        System.getProperty("java.version", "unknown"),
                        Summary.Machine.thisSystem(),
                        resultOptions.provenance()),
                settings,
                measurements);
    }
}
