package io.eventsql.runner;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.Storage;
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

/** Measures how close the library comes to the limits of PostgreSQL and of slow handlers, on one database. */
@Command(
        name = "limits",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Measures how close the library comes to the limits of PostgreSQL and of slow handlers.",
            "All benchmarks run on one database:",
            "  append        the same events appended by binary COPY and by the library",
            "  read          reads of a partition in pages of 10 to 10,000 events, before and after ANALYZE",
            "  snapshot      publish latency at a steady rate, with and without a long-running snapshot",
            "  handlers      a handler that takes 10 ms on one partition, sequentially and by key in parallel",
            "  transactions  publishing inside Spring transactions, compared to inserting a plain row; relay rate",
            "  outbox        transactional and direct publishing at once, with and without a long-running snapshot",
            "  large         publishing and consuming with many stored events, compared to few; not by default",
            "  retention     publishing while segments expire, with idle readers; a burst into small segments; not by default",
            "  compaction    updates of the same 100 keys in a compacted stream; not by default",
            "  cost          CPU, transactions and WAL per event, with and without a checkpoint; not by default",
            "  fanout        the same for one and for ten consumers of a stream; not by default",
            "  tail          what happens while the slowest percent of events is on its way; not by default",
            "  scheduled     publishing with many scheduled events and with none; how late due events are; not by default",
            "cost, fanout and tail need a database on this machine. The role of cost needs pg_checkpoint, that of tail pg_read_all_stats.",
            "Each option can also be set in the environment: --read-events as READ_EVENTS, and so on.",
            "The database is configured in the environment only: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql), DB0_USER (eventsql),"
                    + " DB0_PASSWORD; or DB_URLS with DB_USER and DB_PASSWORD. The command leaves new streams limits_... in it.",
            ""
        },
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:measured",
            "1:an event failed, was lost, duplicated or out of order, or the run aborted",
            "2:invalid input"
        },
        footerHeading = "%nExamples:%n",
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only append,read --rounds 5",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only append,cost --storage blocks",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only snapshot --snapshot-seconds 600",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only handlers --handlers-concurrency 100",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only outbox --outbox-seconds 600",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only large --large-events 100000000 --rounds 5"
        })
final class LimitsCommand implements Callable<Integer> {
    private static final int ROUNDS_MAX = 1_000;
    private static final double ROUND_MIN_SECONDS = 0.05;
    private static final int ROUND_MAX_SECONDS = 3_600;
    private static final int READ_EVENTS_MIN = 1_000;
    private static final int READ_EVENTS_MAX = 1_000_000_000;
    private static final long LARGE_EVENTS_MIN = 100_000;
    private static final long LARGE_EVENTS_MAX = 10_000_000_000L;
    private static final int HANDLERS_EVENTS_MAX = 10_000_000;
    private static final long SCHEDULED_EVENTS_MAX = 100_000_000;
    /** Each event is kept in memory. */
    private static final int TAIL_MAX_SECONDS = 600;

    private final Map<String, String> environment;

    @Spec
    private @Nullable CommandSpec spec;

    @Option(
            names = "--only",
            paramLabel = "NAME",
            split = ",",
            description = "run only these benchmarks, comma-separated (default: the first six)")
    private List<String> only = new ArrayList<>();

    @Option(
            names = "--storage",
            paramLabel = "rows|blocks",
            defaultValue = "rows",
            description =
                    "how the streams of append, read, snapshot, compaction, cost, fanout and tail keep their events; COPY writes rows (default: ${DEFAULT-VALUE})")
    private String storage = "";

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "3",
            description =
                    "measured rounds of append, read, transactions, cost and fanout, after one warm-up round (default: ${DEFAULT-VALUE})")
    private int rounds;

    @Option(
            names = "--round-seconds",
            paramLabel = "N",
            defaultValue = "3",
            description = "duration of each measurement in a round (default: ${DEFAULT-VALUE})")
    private double roundSeconds;

    @Option(
            names = "--read-events",
            paramLabel = "N",
            defaultValue = "300000",
            description = "events in the partition to read (default: ${DEFAULT-VALUE})")
    private int readEvents;

    @Option(
            names = "--snapshot-seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = {
                "duration of each of the four snapshot runs: with and without a snapshot, 1 and 10 partitions",
                "(default: ${DEFAULT-VALUE}; for a long run: 600)"
            })
    private int snapshotSeconds;

    @Option(
            names = "--snapshot-rate",
            paramLabel = "N",
            defaultValue = "2000",
            description = "events per second of snapshot, one per call (default: ${DEFAULT-VALUE})")
    private long snapshotRate;

    @Option(
            names = "--warmup-seconds",
            paramLabel = "N",
            defaultValue = "5",
            description =
                    "warm-up before each run of snapshot, outbox, cost, fanout and tail, not measured (default: ${DEFAULT-VALUE})")
    private int warmupSeconds;

    @Option(
            names = "--handlers-events",
            paramLabel = "N",
            defaultValue = "20000",
            description = "events handled by key in parallel (default: ${DEFAULT-VALUE})")
    private int handlersEvents;

    @Option(
            names = "--handlers-sequential-events",
            paramLabel = "N",
            defaultValue = "500",
            description = "events handled sequentially, at most 100 per second (default: ${DEFAULT-VALUE})")
    private int handlersSequentialEvents;

    @Option(
            names = "--handlers-concurrency",
            paramLabel = "N",
            defaultValue = "50",
            description = "keys handled in parallel, out of 1,000 (default: ${DEFAULT-VALUE})")
    private int handlersConcurrency;

    @Option(
            names = "--outbox-seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = {
                "duration of each of the two outbox runs: with and without a snapshot",
                "(default: ${DEFAULT-VALUE}; for a long run: 600)"
            })
    private int outboxSeconds;

    @Option(
            names = "--outbox-rate",
            paramLabel = "N",
            defaultValue = "500",
            description =
                    "transactions per second of outbox, one event each, and as many direct publishes (default: ${DEFAULT-VALUE})")
    private long outboxRate;

    @Option(
            names = "--large-events",
            paramLabel = "N",
            defaultValue = "10000000",
            description = "events of the large stream; 100,000,000 need 30 GB (default: ${DEFAULT-VALUE})")
    private long largeEvents;

    @Option(
            names = "--retention-seconds",
            paramLabel = "N",
            defaultValue = "20",
            description = "duration of each interval of retention: three in each round (default: ${DEFAULT-VALUE})")
    private int retentionSeconds;

    @Option(
            names = "--burst-seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = "duration of the burst of retention (default: ${DEFAULT-VALUE})")
    private int burstSeconds;

    @Option(
            names = "--burst-rate",
            paramLabel = "N",
            defaultValue = "100000",
            description = "events per second of the burst, 100 per call (default: ${DEFAULT-VALUE})")
    private long burstRate;

    @Option(
            names = "--compaction-seconds",
            paramLabel = "N",
            defaultValue = "1200",
            description = "duration of compaction (default: ${DEFAULT-VALUE})")
    private int compactionSeconds;

    @Option(
            names = "--compaction-rate",
            paramLabel = "N",
            defaultValue = "20000",
            description = "events per second of compaction, 10 per call (default: ${DEFAULT-VALUE})")
    private long compactionRate;

    @Option(
            names = "--cost-seconds",
            paramLabel = "N",
            defaultValue = "10",
            description = "duration of each interval of cost and fanout (default: ${DEFAULT-VALUE})")
    private int costSeconds;

    @Option(
            names = "--tail-seconds",
            paramLabel = "N",
            defaultValue = "60",
            description = "duration of each of the three rates of tail (default: ${DEFAULT-VALUE})")
    private int tailSeconds;

    @Option(
            names = "--scheduled-events",
            paramLabel = "N",
            defaultValue = "1000000",
            description = "events of scheduled, in rounds as those of append (default: ${DEFAULT-VALUE})")
    private long scheduledEvents;

    @Option(
            names = "--scheduled-seconds",
            paramLabel = "N",
            defaultValue = "30",
            description = "for how long 1,000 events per second are due in scheduled (default: ${DEFAULT-VALUE})")
    private int scheduledSeconds;

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
        validator.requireRange("--large-events", largeEvents, LARGE_EVENTS_MIN, LARGE_EVENTS_MAX);
        validator.requireRange("--retention-seconds", retentionSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--burst-seconds", burstSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--burst-rate", burstRate, 100, PublishOptions.EVENTS_RATE_MAX);
        validator.requireRange("--compaction-seconds", compactionSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--compaction-rate", compactionRate, 10, PublishOptions.EVENTS_RATE_MAX);
        validator.requireRange("--cost-seconds", costSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--scheduled-events", scheduledEvents, 1, SCHEDULED_EVENTS_MAX);
        validator.requireRange("--scheduled-seconds", scheduledSeconds, 1, PublishOptions.DURATION_MAX_SECONDS);
        validator.requireRange("--tail-seconds", tailSeconds, 1, TAIL_MAX_SECONDS);
        return new LimitsSettings(
                benchmarks(validator),
                storage(validator),
                new LimitsSettings.Rounds(rounds, roundSeconds),
                readEvents,
                new LimitsSettings.Snapshot(snapshotSeconds, snapshotRate, warmupSeconds),
                new LimitsSettings.Handlers(handlersEvents, handlersSequentialEvents, handlersConcurrency),
                new LimitsSettings.OutboxLoad(outboxSeconds, outboxRate, warmupSeconds),
                largeEvents,
                new LimitsSettings.RetentionLoad(rounds, retentionSeconds, warmupSeconds, burstRate, burstSeconds),
                new LimitsSettings.CompactionLoad(compactionSeconds, compactionRate),
                new LimitsSettings.CostLoad(rounds, costSeconds, warmupSeconds),
                new LimitsSettings.TailLoad(tailSeconds, warmupSeconds),
                new LimitsSettings.ScheduledLoad(scheduledEvents, scheduledSeconds));
    }

    private List<LimitsBenchmark> benchmarks(OptionValidator validator) {
        if (only.isEmpty()) {
            return LimitsBenchmark.DEFAULTS;
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

    private Storage storage(OptionValidator validator) {
        return switch (storage) {
            case "rows" -> Storage.ROWS;
            case "blocks" -> Storage.BLOCKS;
            default -> throw validator.invalid("--storage", "must be rows or blocks, but is '" + storage + "'");
        };
    }

    private DatabaseAddress address(CommandSpec commandSpec) {
        try {
            List<DatabaseAddress> addresses = DatabaseVariables.read(new Variables(environment::get));
            if (addresses.size() > 1) {
                throw new IllegalArgumentException(
                        "Exactly one database is required, but " + addresses.size() + " are configured");
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
        LimitsContext bench = new LimitsContext(
                eventSql, shard.dataSource(), settings.storage(), run, LoadClock.SYSTEM, stop, System.err);
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
