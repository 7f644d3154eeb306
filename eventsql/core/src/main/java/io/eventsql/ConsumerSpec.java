package io.eventsql;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Specification of a consumer and of one member of it. Immutable; every {@code with} method returns a changed copy and
 * throws {@link InvalidInputException}, naming the field and the limit, if the value is null or out of range. All members
 * of a consumer should use the same values, except for {@link #maxPartitions()} and {@link #concurrency()}.
 */
public final class ConsumerSpec {
    public static final int NAME_LENGTH_MAX = 60;
    public static final int DEFAULT_PAGE_EVENTS = 1_000;
    public static final int PAGE_EVENTS_MAX = 100_000;
    public static final long DEFAULT_PAGE_BYTES = 4L << 20;
    public static final long DEFAULT_MAX_FETCHED_BYTES = 64L << 20;
    public static final int DEFAULT_MAX_EVENTS_AHEAD = 20_000;
    public static final Duration DEFAULT_COMMIT_INTERVAL = Duration.ofMillis(50);
    public static final int DEFAULT_CONCURRENCY = 64;
    public static final int CONCURRENCY_MAX = 10_000;
    public static final int DEFAULT_KEY_CONCURRENCY = 1;
    public static final int KEY_CONCURRENCY_MAX = 10_000;
    public static final int DEFAULT_MAX_PARTITIONS = Integer.MAX_VALUE;
    public static final Duration DEFAULT_HANDLER_TIMEOUT = Duration.ofMinutes(5);
    public static final int DEFAULT_CIRCUIT_BREAKER = 20;
    public static final int CIRCUIT_BREAKER_MAX = 1_000_000;
    public static final FailurePolicy DEFAULT_FAILURE_POLICY = FailurePolicy.STOP;
    public static final OutOfRangePolicy DEFAULT_OUT_OF_RANGE_POLICY = OutOfRangePolicy.FAIL;
    public static final MissingEventPolicy DEFAULT_MISSING_EVENT_POLICY = MissingEventPolicy.STOP;
    public static final ReadFrom DEFAULT_READ_FROM = ReadFrom.PRIMARY;
    /** The suffix of a stream's name in the default name of its dead-letter stream. */
    public static final String DEAD_LETTER_SUFFIX = "_dead_letter";

    private final Values values;

    private ConsumerSpec(Values values) {
        this.values = values;
    }

    /**
     * Returns a specification with default values, starting at the earliest event.
     *
     * @param stream the name of an existing stream
     * @param name the consumer's name: lower-case letters, digits and single underscores, starting with a letter, at most
     *     {@value #NAME_LENGTH_MAX} characters
     */
    public static ConsumerSpec of(String stream, String name) {
        Names.requireStreamName("consumer.stream", stream);
        Names.requireName("consumer.name", name, NAME_LENGTH_MAX);
        return new ConsumerSpec(new Values(stream, name));
    }

    /** Returns the name of the stream to consume. */
    public String stream() {
        return values.stream;
    }

    /** Returns the consumer's name. Members with the same name share the stream's partitions and their offsets. */
    public String name() {
        return values.name;
    }

    /** Returns the position at which the consumer starts if it has no committed offset; default: the earliest event. */
    public StartPosition startPosition() {
        return values.startPosition;
    }

    /**
     * Returns the maximum number of events in a page, which is what a batch handler's call has at most, 1 to {@value
     * #PAGE_EVENTS_MAX}; default {@value #DEFAULT_PAGE_EVENTS}. A fetch returns at least a page of a partition that is
     * behind. Where pages are smaller than 1,000 events, a fetch returns as many events as the handler lately handled in 100
     * ms, at most 1,000.
     */
    public int pageEvents() {
        return values.pageEvents;
    }

    /**
     * Returns the maximum number of bytes of values, keys and headers of one partition in a fetch, 1 KiB to 1 GiB; default 4
     * MiB. At least one event is always fetched. A member keeps at most two such fetches of each of its partitions in memory,
     * within {@link #maxFetchedBytes()}.
     */
    public long pageBytes() {
        return values.pageBytes;
    }

    /**
     * Returns the maximum number of bytes of values, keys and headers that this member keeps in memory, fetched and not yet
     * handled, of all its partitions on all shards; 64 KiB to 64 GiB; default 64 MiB. A quarter of it is reserved in equal
     * shares for the partitions, so that none waits for the handlers of the others. One event per partition is always
     * fetched, even if it exceeds that.
     */
    public long maxFetchedBytes() {
        return values.maxFetchedBytes;
    }

    /**
     * Returns the maximum number of events by which the handling of a partition runs ahead of its committed offset, 1 to
     * 10,000,000; default {@value #DEFAULT_MAX_EVENTS_AHEAD}. No more events of a partition, and at most a page, are handled
     * again after a crash. It limits {@link #keyConcurrency()} behind an event whose handler takes long or is retried: the
     * partition then waits for that event.
     */
    public int maxEventsAhead() {
        return values.maxEventsAhead;
    }

    /**
     * Returns the maximum time until the offset of handled events is committed, 1 ms to 1 minute; default 50 ms. After a
     * crash, events handled since the last commit are handled again. Transactional handlers commit with each call
     * instead.
     */
    public Duration commitInterval() {
        return values.commitInterval;
    }

    /**
     * Returns the maximum number of partitions that this member handles concurrently, 1 to {@value #CONCURRENCY_MAX};
     * default {@value #DEFAULT_CONCURRENCY}. A partition that waits for the next attempt of an event does not count.
     * Handlers run on virtual threads.
     */
    public int concurrency() {
        return values.concurrency;
    }

    /**
     * Returns the maximum number of events of one partition that are handled concurrently, each with a different key, 1 to
     * {@value #KEY_CONCURRENCY_MAX}; default 1, which handles the partition in order. Above 1, events with the same key
     * keep their order, events without a key do not. Requires a handler of single events that is not transactional.
     */
    public int keyConcurrency() {
        return values.keyConcurrency;
    }

    /** Returns the maximum number of partitions of one shard assigned to this member, 1 or more; default: no limit. */
    public int maxPartitions() {
        return values.maxPartitions;
    }

    /**
     * Returns the maximum duration of a handler call, 10 ms to 1 day; default 5 minutes. If a handler exceeds it, the
     * member reports this and releases the partition to other members. The handler is not interrupted; its result is
     * ignored. It also limits the statements of a transactional handler: {@link Settings#networkTimeout()} does not.
     */
    public Duration handlerTimeout() {
        return values.handlerTimeout;
    }

    /**
     * Returns the retry policy for failed events; default: {@link RetryPolicy#defaults()}, which limits the attempts with
     * every failure policy except {@link FailurePolicy#STOP}.
     */
    public RetryPolicy retry() {
        return values.retry;
    }

    /** Returns what happens to an event that is not retried any more; default {@link FailurePolicy#STOP}. */
    public FailurePolicy failurePolicy() {
        return values.failurePolicy;
    }

    /**
     * Returns the number of events in a row, without a success in between and of more than one key, that must fail for
     * good in a partition to open its circuit breaker; 0 (none) to {@value #CIRCUIT_BREAKER_MAX}, default {@value
     * #DEFAULT_CIRCUIT_BREAKER}. That many failures suggest an outage of a service behind the handler: the partition then
     * pauses instead of dead-lettering or parking the whole stream. Pauses grow from {@link RetryPolicy#maxDelay()}, at
     * least 1 s, to 1 minute, or to that delay if it is longer; after each, the failed event is handled again, and a success
     * closes the circuit. Exceptions that are never retried ({@link RetryPolicy#fatal()}, {@link RetryPolicy#retryable()}) do
     * not count. Irrelevant with {@link FailurePolicy#STOP}.
     */
    public int circuitBreaker() {
        return values.circuitBreaker;
    }

    /**
     * Returns the name of the dead-letter stream; default: the stream's name followed by {@value #DEAD_LETTER_SUFFIX}. If
     * it does not exist, it is created with the same number of partitions when a consumer starts whose failure policy
     * uses it.
     */
    public String deadLetterStream() {
        String name = values.deadLetterStream;
        return name == null ? values.stream + DEAD_LETTER_SUFFIX : name;
    }

    /** Returns where to resume if retention has removed the next event; default {@link OutOfRangePolicy#FAIL}. */
    public OutOfRangePolicy outOfRangePolicy() {
        return values.outOfRangePolicy;
    }

    /** Returns what happens where events are missing from the log; default {@link MissingEventPolicy#STOP}. */
    public MissingEventPolicy missingEventPolicy() {
        return values.missingEventPolicy;
    }

    /**
     * Returns which server events are fetched from; default {@link ReadFrom#PRIMARY}. With {@link ReadFrom#REPLICA} events
     * arrive when the shard's replica has replayed them. Offsets, leases, parked events and the transactions of transactional
     * handlers stay on the primary. Members of a consumer may differ.
     */
    public ReadFrom readFrom() {
        return values.readFrom;
    }

    /** Returns a copy with another {@link #startPosition()}. */
    public ConsumerSpec withStartPosition(StartPosition value) {
        InvalidInputException.requireGiven("consumer.startPosition", value);
        return with(v -> v.startPosition = value);
    }

    /** Returns a copy with another {@link #pageEvents()}. */
    public ConsumerSpec withPageEvents(int value) {
        InvalidInputException.requireRange("consumer.pageEvents", value, 1, PAGE_EVENTS_MAX);
        return with(v -> v.pageEvents = value);
    }

    /** Returns a copy with another {@link #pageBytes()}. */
    public ConsumerSpec withPageBytes(long value) {
        InvalidInputException.requireRange("consumer.pageBytes", value, 1 << 10, 1L << 30);
        return with(v -> v.pageBytes = value);
    }

    /** Returns a copy with another {@link #maxFetchedBytes()}. */
    public ConsumerSpec withMaxFetchedBytes(long value) {
        InvalidInputException.requireRange("consumer.maxFetchedBytes", value, 64L << 10, 64L << 30);
        return with(v -> v.maxFetchedBytes = value);
    }

    /** Returns a copy with another {@link #maxEventsAhead()}. */
    public ConsumerSpec withMaxEventsAhead(int value) {
        InvalidInputException.requireRange("consumer.maxEventsAhead", value, 1, 10_000_000);
        return with(v -> v.maxEventsAhead = value);
    }

    /** Returns a copy with another {@link #commitInterval()}. */
    public ConsumerSpec withCommitInterval(Duration value) {
        Settings.requireDuration("consumer.commitInterval", value, Duration.ofMillis(1), Duration.ofMinutes(1));
        return with(v -> v.commitInterval = value);
    }

    /** Returns a copy with another {@link #concurrency()}. */
    public ConsumerSpec withConcurrency(int value) {
        InvalidInputException.requireRange("consumer.concurrency", value, 1, CONCURRENCY_MAX);
        return with(v -> v.concurrency = value);
    }

    /** Returns a copy with another {@link #keyConcurrency()}. */
    public ConsumerSpec withKeyConcurrency(int value) {
        InvalidInputException.requireRange("consumer.keyConcurrency", value, 1, KEY_CONCURRENCY_MAX);
        return with(v -> v.keyConcurrency = value);
    }

    /** Returns a copy with another {@link #maxPartitions()}. */
    public ConsumerSpec withMaxPartitions(int value) {
        InvalidInputException.requireRange("consumer.maxPartitions", value, 1, Integer.MAX_VALUE);
        return with(v -> v.maxPartitions = value);
    }

    /** Returns a copy with another {@link #handlerTimeout()}. */
    public ConsumerSpec withHandlerTimeout(Duration value) {
        Settings.requireDuration("consumer.handlerTimeout", value, Duration.ofMillis(10), Duration.ofDays(1));
        return with(v -> v.handlerTimeout = value);
    }

    /** Returns a copy with another {@link #retry()}. */
    public ConsumerSpec withRetry(RetryPolicy value) {
        InvalidInputException.requireGiven("consumer.retry", value);
        return with(v -> v.retry = value);
    }

    /** Returns a copy with other delays of {@link #retry()}. */
    public ConsumerSpec withRetryDelay(Duration initialDelay, Duration maxDelay) {
        return withRetry(values.retry.withDelay(initialDelay, maxDelay));
    }

    /** Returns a copy with another {@link #failurePolicy()}. */
    public ConsumerSpec withFailurePolicy(FailurePolicy value) {
        InvalidInputException.requireGiven("consumer.failurePolicy", value);
        return with(v -> v.failurePolicy = value);
    }

    /** Returns a copy with another {@link #circuitBreaker()}; 0 switches it off. */
    public ConsumerSpec withCircuitBreaker(int failuresInARow) {
        InvalidInputException.requireRange("consumer.circuitBreaker", failuresInARow, 0, CIRCUIT_BREAKER_MAX);
        return with(v -> v.circuitBreaker = failuresInARow);
    }

    /** Returns a copy with another {@link #deadLetterStream()}. */
    public ConsumerSpec withDeadLetterStream(String value) {
        Names.requireStreamName("consumer.deadLetterStream", value);
        return with(v -> v.deadLetterStream = value);
    }

    /** Returns a copy with another {@link #outOfRangePolicy()}. */
    public ConsumerSpec withOutOfRangePolicy(OutOfRangePolicy value) {
        InvalidInputException.requireGiven("consumer.outOfRangePolicy", value);
        return with(v -> v.outOfRangePolicy = value);
    }

    /** Returns a copy with another {@link #missingEventPolicy()}. */
    public ConsumerSpec withMissingEventPolicy(MissingEventPolicy value) {
        InvalidInputException.requireGiven("consumer.missingEventPolicy", value);
        return with(v -> v.missingEventPolicy = value);
    }

    /** Returns a copy with another {@link #readFrom()}. */
    public ConsumerSpec withReadFrom(ReadFrom value) {
        InvalidInputException.requireGiven("consumer.readFrom", value);
        return with(v -> v.readFrom = value);
    }

    private ConsumerSpec with(Consumer<Values> change) {
        Values changed = new Values(values);
        change.accept(changed);
        return new ConsumerSpec(changed);
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

    /** Modified only before the specification that contains it is created. */
    private static final class Values {
        private final String stream;
        private final String name;
        private StartPosition startPosition = StartPosition.EARLIEST;
        private int pageEvents = DEFAULT_PAGE_EVENTS;
        private long pageBytes = DEFAULT_PAGE_BYTES;
        private long maxFetchedBytes = DEFAULT_MAX_FETCHED_BYTES;
        private int maxEventsAhead = DEFAULT_MAX_EVENTS_AHEAD;
        private Duration commitInterval = DEFAULT_COMMIT_INTERVAL;
        private int concurrency = DEFAULT_CONCURRENCY;
        private int keyConcurrency = DEFAULT_KEY_CONCURRENCY;
        private int maxPartitions = DEFAULT_MAX_PARTITIONS;
        private Duration handlerTimeout = DEFAULT_HANDLER_TIMEOUT;
        private RetryPolicy retry = RetryPolicy.defaults();
        private FailurePolicy failurePolicy = DEFAULT_FAILURE_POLICY;
        private int circuitBreaker = DEFAULT_CIRCUIT_BREAKER;
        private @Nullable String deadLetterStream;
        private OutOfRangePolicy outOfRangePolicy = DEFAULT_OUT_OF_RANGE_POLICY;
        private MissingEventPolicy missingEventPolicy = DEFAULT_MISSING_EVENT_POLICY;
        private ReadFrom readFrom = DEFAULT_READ_FROM;

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
                    maxFetchedBytes,
                    maxEventsAhead,
                    commitInterval,
                    concurrency,
                    keyConcurrency,
                    maxPartitions,
                    handlerTimeout,
                    retry,
                    failurePolicy,
                    circuitBreaker,
                    deadLetterStream == null ? stream + DEAD_LETTER_SUFFIX : deadLetterStream,
                    outOfRangePolicy,
                    missingEventPolicy,
                    readFrom);
        }

        private Values(Values other) {
            this(other.stream, other.name);
            startPosition = other.startPosition;
            pageEvents = other.pageEvents;
            pageBytes = other.pageBytes;
            maxFetchedBytes = other.maxFetchedBytes;
            maxEventsAhead = other.maxEventsAhead;
            commitInterval = other.commitInterval;
            concurrency = other.concurrency;
            keyConcurrency = other.keyConcurrency;
            maxPartitions = other.maxPartitions;
            handlerTimeout = other.handlerTimeout;
            retry = other.retry;
            failurePolicy = other.failurePolicy;
            circuitBreaker = other.circuitBreaker;
            deadLetterStream = other.deadLetterStream;
            outOfRangePolicy = other.outOfRangePolicy;
            missingEventPolicy = other.missingEventPolicy;
            readFrom = other.readFrom;
        }
    }
}
