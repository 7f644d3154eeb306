package io.eventsql;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What a consumer is. Immutable; every {@code with} method returns a changed copy.
 *
 * @param stream the stream it reads
 * @param name the consumer's name, of the same form as a stream's: its offsets are kept under it
 * @param startPosition where it begins when it has no offset yet
 * @param pageEvents the most events of one partition fetched at once and given to a batch handler, 1 to {@value
 *     #MAX_PAGE_EVENTS}
 * @param pageBytes the most bytes of values of one partition fetched at once (one event is always fetched), 1 KiB to 1
 *     GiB. A member holds at most two pages of each of its partitions in memory.
 * @param commitInterval how long handled events wait at most until their offset is committed: what is handled again
 *     after a crash
 * @param concurrency how many partitions are handled at the same time, 1 to {@value #MAX_CONCURRENCY}; the
 *     handlers run on virtual threads
 * @param retryDelayMin the delay before a failed event is handled again; doubles with each failure
 * @param retryDelayMax the longest such delay
 */
public record ConsumerSpec(
        String stream,
        String name,
        StartPosition startPosition,
        int pageEvents,
        long pageBytes,
        Duration commitInterval,
        int concurrency,
        Duration retryDelayMin,
        Duration retryDelayMax) {
    public static final int MAX_NAME_LENGTH = 60;
    public static final int DEFAULT_PAGE_EVENTS = 1_000;
    public static final int MAX_PAGE_EVENTS = 100_000;
    public static final long DEFAULT_PAGE_BYTES = 4L << 20;
    public static final Duration DEFAULT_COMMIT_INTERVAL = Duration.ofMillis(50);
    public static final int DEFAULT_CONCURRENCY = 64;
    public static final int MAX_CONCURRENCY = 10_000;
    public static final Duration DEFAULT_RETRY_DELAY_MIN = Duration.ofMillis(100);
    public static final Duration DEFAULT_RETRY_DELAY_MAX = Duration.ofSeconds(30);

    /**
     * Checks every field.
     *
     * @throws InvalidInputException if a field is out of its range; names the field and the limit
     */
    public ConsumerSpec {
        Names.requireName("consumer.stream", stream, StreamSpec.MAX_NAME_LENGTH);
        Names.requireName("consumer.name", name, MAX_NAME_LENGTH);
        if ((@Nullable StartPosition) startPosition == null) {
            throw new InvalidInputException("consumer.startPosition", "must be EARLIEST or LATEST, but is null");
        }
        InvalidInputException.requireRange("consumer.pageEvents", pageEvents, 1, MAX_PAGE_EVENTS);
        InvalidInputException.requireRange("consumer.pageBytes", pageBytes, 1 << 10, 1L << 30);
        InvalidInputException.requireRange("consumer.concurrency", concurrency, 1, MAX_CONCURRENCY);
        Settings.requireDuration(
                "consumer.commitInterval", commitInterval, Duration.ofMillis(1), Duration.ofMinutes(1));
        Settings.requireDuration("consumer.retryDelayMin", retryDelayMin, Duration.ofMillis(1), Duration.ofHours(1));
        Settings.requireDuration("consumer.retryDelayMax", retryDelayMax, retryDelayMin, Duration.ofHours(24));
    }

    /** A consumer with the defaults that begins at the earliest event. */
    public static ConsumerSpec of(String stream, String name) {
        return new ConsumerSpec(
                stream,
                name,
                StartPosition.EARLIEST,
                DEFAULT_PAGE_EVENTS,
                DEFAULT_PAGE_BYTES,
                DEFAULT_COMMIT_INTERVAL,
                DEFAULT_CONCURRENCY,
                DEFAULT_RETRY_DELAY_MIN,
                DEFAULT_RETRY_DELAY_MAX);
    }

    public ConsumerSpec withStartPosition(StartPosition newStartPosition) {
        return new ConsumerSpec(
                stream,
                name,
                newStartPosition,
                pageEvents,
                pageBytes,
                commitInterval,
                concurrency,
                retryDelayMin,
                retryDelayMax);
    }

    public ConsumerSpec withPageEvents(int newPageEvents) {
        return new ConsumerSpec(
                stream,
                name,
                startPosition,
                newPageEvents,
                pageBytes,
                commitInterval,
                concurrency,
                retryDelayMin,
                retryDelayMax);
    }

    public ConsumerSpec withPageBytes(long newPageBytes) {
        return new ConsumerSpec(
                stream,
                name,
                startPosition,
                pageEvents,
                newPageBytes,
                commitInterval,
                concurrency,
                retryDelayMin,
                retryDelayMax);
    }

    public ConsumerSpec withCommitInterval(Duration newCommitInterval) {
        return new ConsumerSpec(
                stream,
                name,
                startPosition,
                pageEvents,
                pageBytes,
                newCommitInterval,
                concurrency,
                retryDelayMin,
                retryDelayMax);
    }

    public ConsumerSpec withConcurrency(int newConcurrency) {
        return new ConsumerSpec(
                stream,
                name,
                startPosition,
                pageEvents,
                pageBytes,
                commitInterval,
                newConcurrency,
                retryDelayMin,
                retryDelayMax);
    }

    public ConsumerSpec withRetryDelay(Duration min, Duration max) {
        return new ConsumerSpec(
                stream, name, startPosition, pageEvents, pageBytes, commitInterval, concurrency, min, max);
    }
}
