package io.eventsql.runner;

import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.spec.RunSettings;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/** The options of a publish run, from the command line or the environment. */
final class PublishOptions {
    static final long EVENTS_RATE_MAX = 1_000_000;
    static final long EVENTS_MAX = 1_000_000_000;
    static final int CALLERS_MAX = 10_000;
    static final int KEYS_MAX = 1_000_000;
    static final int DURATION_MAX_SECONDS = 86_400;
    /** Leaves room for keys in addition to values. */
    static final long CALL_BYTES_MAX = Settings.DEFAULT_MAX_BATCH_BYTES * 9 / 10;

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
            description = "partitions per shard if the stream has to be created (default: ${DEFAULT-VALUE})")
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
            description = "id of the run, 8 lower-case hexadecimal characters (default: random)")
    private @Nullable String runId;

    @Option(
            names = "--runner-number",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "number of this runner, from 0; determines its preferred shard and its keys (default: ${DEFAULT-VALUE})")
    private int runnerNumber;

    @Option(
            names = "--runners",
            paramLabel = "N",
            defaultValue = "1",
            description = "number of concurrent runners; they start together (default: ${DEFAULT-VALUE})")
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
            description = "events to publish, excluding the warm-up (default: ${DEFAULT-VALUE})")
    private long eventsToPublish;

    @Option(
            names = "--events-batch-size",
            paramLabel = "N",
            defaultValue = "1",
            description = "events per publish call (default: ${DEFAULT-VALUE})")
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
            description = "publish events with keys, distributed over all shards (default: ${DEFAULT-VALUE})")
    private boolean keyed;

    @Option(
            names = "--keys",
            paramLabel = "N",
            defaultValue = "1000",
            description = "number of distinct keys of this runner (default: ${DEFAULT-VALUE})")
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
            description = "warm-up with the same load, not measured (default: ${DEFAULT-VALUE})")
    private int warmupSeconds;

    @Option(
            names = "--warmup-max-seconds",
            paramLabel = "N",
            defaultValue = "0",
            description = {
                "continue the warm-up after --warmup-seconds until the JVMs of this runner, the other runners and the apps"
                        + " hardly compile, for at most this long;",
                "0: the warm-up takes exactly --warmup-seconds (default: ${DEFAULT-VALUE})"
            })
    private int warmupMaxSeconds;

    @Option(
            names = "--consume-timeout",
            paramLabel = "SECONDS",
            defaultValue = "120",
            description = "maximum time to wait for consumption (default: ${DEFAULT-VALUE})")
    private int consumeTimeout;

    @Option(names = "--runner-result", paramLabel = "FILE", description = "result file (default: runner-<number>.json)")
    private @Nullable Path runnerResult;

    /** Returns the path of the result file. */
    Path resultFile() {
        return runnerResult == null ? Path.of("runner-" + runnerNumber + ".json") : runnerResult;
    }

    /** @throws CommandLine.ParameterException if a value is out of range; names the option and the limit */
    RunSettings settings(CommandLine commandLine) {
        OptionValidator validator = new OptionValidator(commandLine);
        String name = validator.requireStreamName("--stream", stream);
        validator.requireRange("--partitions", partitions, 1, StreamSpec.PARTITIONS_MAX);
        validator.require(!consumer.isBlank(), "--consumer", "must not be empty");
        validator.requireRange("--consume-timeout", consumeTimeout, 1, DURATION_MAX_SECONDS);
        return new RunSettings(
                identity(validator),
                new RunSettings.Stream(name, partitions, consumer, consumeTimeout),
                load(validator),
                events(validator));
    }

    private RunSettings.Identity identity(OptionValidator validator) {
        String run = runId == null ? BenchmarkEvent.randomRun() : runId;
        validator.require(
                BenchmarkEvent.isRun(run),
                "--run-id",
                "must be 8 lower-case hexadecimal characters, but is '" + run + "'");
        validator.requireRange("--runners", runners, 1, BenchmarkEvent.RUNNER_MAX + 1);
        validator.requireRange("--runner-number", runnerNumber, 0, runners - 1);
        return new RunSettings.Identity(run, runnerNumber, runners);
    }

    private RunSettings.Load load(OptionValidator validator) {
        validator.requireRange("--events-rate", eventsRate, 0, EVENTS_RATE_MAX);
        validator.requireRange("--events-to-publish", eventsToPublish, 1, EVENTS_MAX);
        validator.requireRange("--events-batch-size", eventsBatchSize, 1, Settings.DEFAULT_MAX_BATCH_EVENTS);
        validator.requireRange("--callers", callers, 1, CALLERS_MAX);
        validator.requireRange("--warmup-seconds", warmupSeconds, 0, DURATION_MAX_SECONDS);
        validator.requireRange("--warmup-max-seconds", warmupMaxSeconds, 0, DURATION_MAX_SECONDS);
        return new RunSettings.Load(
                eventsRate, eventsToPublish, eventsBatchSize, callers, async, warmupSeconds, warmupMaxSeconds);
    }

    private RunSettings.Events events(OptionValidator validator) {
        validator.requireRange("--keys", keys, 1, KEYS_MAX);
        validator.require(
                !keyed || eventsRate > 0 || keys >= callers,
                "--keys",
                "must be at least the number of --callers (" + callers
                        + "), because a key belongs to one caller, but is " + keys);
        Integer bytes = eventBytes;
        if (bytes != null) {
            validator.requireRange(
                    "--event-bytes", bytes, BenchmarkEvent.EVENT_BYTES_MIN, Settings.DEFAULT_MAX_EVENT_BYTES);
            long callBytes = (long) bytes * eventsBatchSize;
            validator.require(
                    callBytes <= CALL_BYTES_MAX,
                    "--event-bytes",
                    "times --events-batch-size must be at most " + CALL_BYTES_MAX + ", but is " + callBytes);
        }
        return new RunSettings.Events(bytes, keyed, keys);
    }
}
