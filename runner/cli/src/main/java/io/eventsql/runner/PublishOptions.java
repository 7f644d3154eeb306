package io.eventsql.runner;

import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.workload.RunSettings;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/** What a runner is asked to do, as it is written on the command line or in the environment. */
final class PublishOptions {
    static final long MAX_EVENTS_RATE = 1_000_000;
    static final long MAX_EVENTS = 1_000_000_000;
    static final int MAX_CALLERS = 10_000;
    static final int MAX_KEYS = 1_000_000;
    static final int MAX_SECONDS = 86_400;
    /** Leaves room for keys beside the values. */
    static final long MAX_CALL_BYTES = Settings.DEFAULT_MAX_BATCH_BYTES * 9 / 10;

    @Option(
            names = "--stream",
            paramLabel = "NAME",
            defaultValue = "account_created",
            description = "stream to publish to (default: ${DEFAULT-VALUE})")
    private String stream = "";

    @Option(
            names = "--partitions",
            paramLabel = "N",
            defaultValue = "10",
            description = "the stream's partitions on each shard, when it is created (default: ${DEFAULT-VALUE})")
    private int partitions;

    @Option(
            names = "--consumer",
            paramLabel = "NAME",
            defaultValue = "app",
            description = "consumer to wait for (default: ${DEFAULT-VALUE})")
    private String consumer = "";

    @Option(
            names = "--run-id",
            paramLabel = "ID",
            description = "the run's id, 8 lower-case hexadecimal characters (default: random)")
    private @Nullable String runId;

    @Option(
            names = "--runner-number",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "number of this runner, from 0; picks its preferred shard and its keys (default: ${DEFAULT-VALUE})")
    private int runnerNumber;

    @Option(
            names = "--runners",
            paramLabel = "N",
            defaultValue = "1",
            description = "runners at the same time; they wait for each other (default: ${DEFAULT-VALUE})")
    private int runners;

    @Option(
            names = "--events-rate",
            paramLabel = "N",
            defaultValue = "5000",
            description = "events per second on an exact schedule; 0: as fast as possible (default: ${DEFAULT-VALUE})")
    private long eventsRate;

    @Option(
            names = "--events-to-publish",
            paramLabel = "N",
            defaultValue = "100000",
            description = "events to publish, without warm-up (default: ${DEFAULT-VALUE})")
    private long eventsToPublish;

    @Option(
            names = "--events-batch-size",
            paramLabel = "N",
            defaultValue = "1",
            description = "events of one publish call (default: ${DEFAULT-VALUE})")
    private int eventsBatchSize;

    @Option(
            names = "--callers",
            paramLabel = "N",
            defaultValue = "50",
            description = "concurrent callers when the rate is 0 (default: ${DEFAULT-VALUE})")
    private int callers;

    @Option(
            names = "--event-bytes",
            paramLabel = "N",
            description = "exact size of an event's value (default: the account_created event, about 230)")
    private @Nullable Integer eventBytes;

    @Option(
            names = "--keyed",
            paramLabel = "BOOLEAN",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            description = "events have keys and go to all shards (default: ${DEFAULT-VALUE})")
    private boolean keyed;

    @Option(
            names = "--keys",
            paramLabel = "N",
            defaultValue = "1000",
            description = "different keys of this runner (default: ${DEFAULT-VALUE})")
    private int keys;

    @Option(
            names = "--async",
            paramLabel = "BOOLEAN",
            arity = "0..1",
            fallbackValue = "true",
            defaultValue = "false",
            description = "callers do not wait for acknowledgements when the rate is 0 (default: ${DEFAULT-VALUE})")
    private boolean async;

    @Option(
            names = "--warmup-seconds",
            paramLabel = "N",
            defaultValue = "5",
            description = "the same load before, not measured (default: ${DEFAULT-VALUE})")
    private int warmupSeconds;

    @Option(
            names = "--consume-timeout",
            paramLabel = "SECONDS",
            defaultValue = "120",
            description = "how long to wait until everything is consumed (default: ${DEFAULT-VALUE})")
    private int consumeTimeout;

    @Option(
            names = "--runner-result",
            paramLabel = "FILE",
            description = "where to write the result (default: runner-<number>.json)")
    private @Nullable Path runnerResult;

    /** Where the result is written. */
    Path resultFile() {
        return runnerResult == null ? Path.of("runner-" + runnerNumber + ".json") : runnerResult;
    }

    /** @throws CommandLine.ParameterException if a value is out of range; names the option and the limit */
    RunSettings settings(CommandLine commandLine) {
        OptionLimits limits = new OptionLimits(commandLine);
        limits.require(
                stream.matches("[a-z][a-z0-9]*(_[a-z0-9]+)*") && stream.length() <= StreamSpec.NAME_LENGTH_MAX,
                "--stream",
                "must be lower-case letters, digits and single underscores, at most " + StreamSpec.NAME_LENGTH_MAX
                        + " characters, but is '" + stream + "'");
        limits.requireRange("--partitions", partitions, 1, StreamSpec.PARTITIONS_MAX);
        limits.require(!consumer.isBlank(), "--consumer", "must not be empty");
        limits.requireRange("--consume-timeout", consumeTimeout, 1, MAX_SECONDS);
        return new RunSettings(
                identity(limits),
                new RunSettings.Stream(stream, partitions, consumer, consumeTimeout),
                load(limits),
                events(limits));
    }

    private RunSettings.Identity identity(OptionLimits limits) {
        String run = runId == null ? BenchmarkEvent.randomRun() : runId;
        limits.require(
                BenchmarkEvent.isRun(run),
                "--run-id",
                "must be 8 lower-case hexadecimal characters, but is '" + run + "'");
        limits.requireRange("--runners", runners, 1, BenchmarkEvent.MAX_RUNNER + 1);
        limits.requireRange("--runner-number", runnerNumber, 0, runners - 1);
        return new RunSettings.Identity(run, runnerNumber, runners);
    }

    private RunSettings.Load load(OptionLimits limits) {
        limits.requireRange("--events-rate", eventsRate, 0, MAX_EVENTS_RATE);
        limits.requireRange("--events-to-publish", eventsToPublish, 1, MAX_EVENTS);
        limits.requireRange("--events-batch-size", eventsBatchSize, 1, Settings.DEFAULT_MAX_BATCH_EVENTS);
        limits.requireRange("--callers", callers, 1, MAX_CALLERS);
        limits.requireRange("--warmup-seconds", warmupSeconds, 0, MAX_SECONDS);
        return new RunSettings.Load(eventsRate, eventsToPublish, eventsBatchSize, callers, async, warmupSeconds);
    }

    private RunSettings.Events events(OptionLimits limits) {
        limits.requireRange("--keys", keys, 1, MAX_KEYS);
        limits.require(
                !keyed || eventsRate > 0 || keys >= callers,
                "--keys",
                "must be at least the number of --callers (" + callers
                        + "), because a key belongs to one caller, but is " + keys);
        Integer bytes = eventBytes;
        if (bytes != null) {
            limits.requireRange(
                    "--event-bytes", bytes, BenchmarkEvent.MIN_EVENT_BYTES, Settings.DEFAULT_MAX_EVENT_BYTES);
            long callBytes = (long) bytes * eventsBatchSize;
            limits.require(
                    callBytes <= MAX_CALL_BYTES,
                    "--event-bytes",
                    "times --events-batch-size must be at most " + MAX_CALL_BYTES + ", but is " + callBytes);
        }
        return new RunSettings.Events(bytes, keyed, keys);
    }
}
