package io.eventsql;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What a consumer is and how this process takes part in it. Immutable; every {@code with} method returns a changed copy
 * and throws {@link InvalidInputException}, naming the field and the limit, if the value is out of its range. All
 * members of a consumer should have the same values, except for {@link #maxPartitions()} and {@link #concurrency()}.
 */
public final class ConsumerSpec {
    public static final int NAME_LENGTH_MAX = 60;
    public static final int DEFAULT_PAGE_EVENTS = 1_000;
    public static final int PAGE_EVENTS_MAX = 100_000;
    public static final long DEFAULT_PAGE_BYTES = 4L << 20;
    public static final Duration DEFAULT_COMMIT_INTERVAL = Duration.ofMillis(50);
    public static final int DEFAULT_CONCURRENCY = 64;
    public static final int CONCURRENCY_MAX = 10_000;
    public static final int DEFAULT_KEY_CONCURRENCY = 1;
    public static final int KEY_CONCURRENCY_MAX = 10_000;
    public static final int DEFAULT_MAX_PARTITIONS = Integer.MAX_VALUE;
    public static final Duration DEFAULT_HANDLER_TIMEOUT = Duration.ofMinutes(5);
    public static final FailurePolicy DEFAULT_FAILURE_POLICY = FailurePolicy.STOP;
    public static final OutOfRangePolicy DEFAULT_OUT_OF_RANGE_POLICY = OutOfRangePolicy.FAIL;
    /** What follows a stream's name in the default name of its dead-letter stream. */
    public static final String DEAD_LETTER_SUFFIX = "_dead_letter";

    private final Values values;

    private ConsumerSpec(Values values) {
        this.values = values;
    }

    /** A consumer with the defaults that begins at the earliest event. */
    public static ConsumerSpec of(String stream, String name) {
        Names.requireName("consumer.stream", stream, StreamSpec.NAME_LENGTH_MAX);
        Names.requireName("consumer.name", name, NAME_LENGTH_MAX);
        return new ConsumerSpec(new Values(stream, name));
    }

    /** The stream it reads. */
    public String stream() {
        return values.stream;
    }

    /** The consumer's name, of the same form as a stream's: its offsets are kept under it. */
    public String name() {
        return values.name;
    }

    /** Where it begins when it has no offset yet; default: the earliest event. */
    public StartPosition startPosition() {
        return values.startPosition;
    }

    /**
     * The most events of one partition fetched at once and given to a batch handler, 1 to {@value #PAGE_EVENTS_MAX};
     * default {@value #DEFAULT_PAGE_EVENTS}.
     */
    public int pageEvents() {
        return values.pageEvents;
    }

    /**
     * The most bytes of values of one partition fetched at once (one event is always fetched), 1 KiB to 1 GiB; default
     * 4 MiB. A member holds at most two pages of each of its partitions in memory.
     */
    public long pageBytes() {
        return values.pageBytes;
    }

    /**
     * How long handled events wait at most until their offset is committed: what is handled again after a crash; 1 ms
     * to 1 minute, default 50 ms. Transactional handlers commit with each call instead.
     */
    public Duration commitInterval() {
        return values.commitInterval;
    }

    /**
     * How many partitions this member handles at the same time, 1 to {@value #CONCURRENCY_MAX}, default {@value
     * #DEFAULT_CONCURRENCY}; handlers run on virtual threads.
     */
    public int concurrency() {
        return values.concurrency;
    }

    /**
     * How many events of one partition are handled at the same time, each of another key, 1 (the default: all in order)
     * to {@value #KEY_CONCURRENCY_MAX}. Events of one key stay in order; events without a key have none then. For
     * handlers of single events that are not transactional.
     */
    public int keyConcurrency() {
        return values.keyConcurrency;
    }

    /** The most partitions of one shard this member holds, 1 or more; default: no limit but its fair share. */
    public int maxPartitions() {
        return values.maxPartitions;
    }

    /**
     * A handler that runs longer is reported and no longer keeps its partition: another member takes it, 10 ms to 1 day,
     * default 5 minutes. The handler itself is not interrupted; what it returns does not count any more.
     */
    public Duration handlerTimeout() {
        return values.handlerTimeout;
    }

    /** How failed events are handled again; default: without end. */
    public RetryPolicy retry() {
        return values.retry;
    }

    /** What becomes of an event that may not be tried again; default {@link FailurePolicy#STOP}. */
    public FailurePolicy failurePolicy() {
        return values.failurePolicy;
    }

    /**
     * The stream that dead letters go to, created when a consumer with such a policy starts, with as many partitions as
     * the consumer's stream; by default the stream's name and {@value #DEAD_LETTER_SUFFIX}.
     */
    public String deadLetterStream() {
        String name = values.deadLetterStream;
        return name == null ? values.stream + DEAD_LETTER_SUFFIX : name;
    }

    /** Where it goes on when retention has overtaken it; default {@link OutOfRangePolicy#FAIL}. */
    public OutOfRangePolicy outOfRangePolicy() {
        return values.outOfRangePolicy;
    }

    public ConsumerSpec withStartPosition(StartPosition value) {
        requireGiven("consumer.startPosition", value);
        return with(v -> v.startPosition = value);
    }

    public ConsumerSpec withPageEvents(int value) {
        InvalidInputException.requireRange("consumer.pageEvents", value, 1, PAGE_EVENTS_MAX);
        return with(v -> v.pageEvents = value);
    }

    public ConsumerSpec withPageBytes(long value) {
        InvalidInputException.requireRange("consumer.pageBytes", value, 1 << 10, 1L << 30);
        return with(v -> v.pageBytes = value);
    }

    public ConsumerSpec withCommitInterval(Duration value) {
        Settings.requireDuration("consumer.commitInterval", value, Duration.ofMillis(1), Duration.ofMinutes(1));
        return with(v -> v.commitInterval = value);
    }

    public ConsumerSpec withConcurrency(int value) {
        InvalidInputException.requireRange("consumer.concurrency", value, 1, CONCURRENCY_MAX);
        return with(v -> v.concurrency = value);
    }

    public ConsumerSpec withKeyConcurrency(int value) {
        InvalidInputException.requireRange("consumer.keyConcurrency", value, 1, KEY_CONCURRENCY_MAX);
        return with(v -> v.keyConcurrency = value);
    }

    public ConsumerSpec withMaxPartitions(int value) {
        InvalidInputException.requireRange("consumer.maxPartitions", value, 1, Integer.MAX_VALUE);
        return with(v -> v.maxPartitions = value);
    }

    public ConsumerSpec withHandlerTimeout(Duration value) {
        Settings.requireDuration("consumer.handlerTimeout", value, Duration.ofMillis(10), Duration.ofDays(1));
        return with(v -> v.handlerTimeout = value);
    }

    public ConsumerSpec withRetry(RetryPolicy value) {
        requireGiven("consumer.retry", value);
        return with(v -> v.retry = value);
    }

    /** Changes only the delays of {@link #retry()}. */
    public ConsumerSpec withRetryDelay(Duration min, Duration max) {
        return withRetry(values.retry.withDelay(min, max));
    }

    public ConsumerSpec withFailurePolicy(FailurePolicy value) {
        requireGiven("consumer.failurePolicy", value);
        return with(v -> v.failurePolicy = value);
    }

    public ConsumerSpec withDeadLetterStream(String value) {
        Names.requireName("consumer.deadLetterStream", value, StreamSpec.NAME_LENGTH_MAX);
        return with(v -> v.deadLetterStream = value);
    }

    public ConsumerSpec withOutOfRangePolicy(OutOfRangePolicy value) {
        requireGiven("consumer.outOfRangePolicy", value);
        return with(v -> v.outOfRangePolicy = value);
    }

    private ConsumerSpec with(Consumer<Values> change) {
        Values changed = new Values(values);
        change.accept(changed);
        return new ConsumerSpec(changed);
    }

    private static void requireGiven(String field, @Nullable Object value) {
        if (value == null) {
            throw new InvalidInputException(field, "must not be null");
        }
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof ConsumerSpec that && values.all().equals(that.values.all());
    }

    @Override
    public int hashCode() {
        return values.all().hashCode();
    }

    @Override
    public String toString() {
        return "ConsumerSpec" + values.all();
    }

    /** Changed only before the spec that holds it is made. */
    private static final class Values {
        private final String stream;
        private final String name;
        private StartPosition startPosition = StartPosition.EARLIEST;
        private int pageEvents = DEFAULT_PAGE_EVENTS;
        private long pageBytes = DEFAULT_PAGE_BYTES;
        private Duration commitInterval = DEFAULT_COMMIT_INTERVAL;
        private int concurrency = DEFAULT_CONCURRENCY;
        private int keyConcurrency = DEFAULT_KEY_CONCURRENCY;
        private int maxPartitions = DEFAULT_MAX_PARTITIONS;
        private Duration handlerTimeout = DEFAULT_HANDLER_TIMEOUT;
        private RetryPolicy retry = RetryPolicy.defaults();
        private FailurePolicy failurePolicy = DEFAULT_FAILURE_POLICY;
        private @Nullable String deadLetterStream;
        private OutOfRangePolicy outOfRangePolicy = DEFAULT_OUT_OF_RANGE_POLICY;

        private Values(String stream, String name) {
            this.stream = stream;
            this.name = name;
        }

        private List<Object> all() {
            return List.of(
                    stream,
                    name,
                    startPosition,
                    pageEvents,
                    pageBytes,
                    commitInterval,
                    concurrency,
                    keyConcurrency,
                    maxPartitions,
                    handlerTimeout,
                    retry,
                    failurePolicy,
                    deadLetterStream == null ? stream + DEAD_LETTER_SUFFIX : deadLetterStream,
                    outOfRangePolicy);
        }

        private Values(Values other) {
            this(other.stream, other.name);
            startPosition = other.startPosition;
            pageEvents = other.pageEvents;
            pageBytes = other.pageBytes;
            commitInterval = other.commitInterval;
            concurrency = other.concurrency;
            keyConcurrency = other.keyConcurrency;
            maxPartitions = other.maxPartitions;
            handlerTimeout = other.handlerTimeout;
            retry = other.retry;
            failurePolicy = other.failurePolicy;
            deadLetterStream = other.deadLetterStream;
            outOfRangePolicy = other.outOfRangePolicy;
        }
    }
}
