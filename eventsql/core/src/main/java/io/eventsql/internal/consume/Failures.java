package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.StoredEvent;
import io.eventsql.internal.consume.HandlerCall.Step;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What becomes of events that could not be handled, of events behind them whose key is parked, and of partitions that
 * cannot go on. Setting aside and advancing the offset are one fenced transaction. Thread-safe.
 */
final class Failures {
    private static final Logger LOG = LoggerFactory.getLogger(Failures.class);
    private static final int ERROR_LENGTH_MAX = 4_000;
    private static final long RETRY_MIN_MS = 50;
    private static final long RETRY_MAX_MS = 1_000;
    /** A partition with more parked keys stops: they are kept in memory. */
    private static final int PARKED_KEYS_MAX = 100_000;

    /** In the place of an offset: no event is passed. */
    private static final long NO_EVENT = Long.MIN_VALUE;

    private static final String BEHIND_PARKED = "its key is parked";

    private final ConsumerSpec spec;
    private final DeadLetters deadLetters;
    private final CountDownLatch closing = new CountDownLatch(1);

    Failures(ConsumerSpec spec, DeadLetters deadLetters) {
        this.spec = spec;
        this.deadLetters = deadLetters;
    }

    /**
     * Applies the failure policy to an event.
     *
     * @return whether to go on with the next one
     */
    boolean apply(ShardMember member, OwnedPartition partition, StoredEvent event, int attempts, Throwable error) {
        String text = text(error);
        @Nullable String key = event.key();
        if (spec.failurePolicy() == FailurePolicy.STOP) {
            stop(member, partition, "offset " + event.offset() + ": " + text);
            return false;
        }
        if (spec.failurePolicy() == FailurePolicy.PARK_KEY && key != null) {
            return parkKey(member, partition, event, key, text, attempts, error);
        }
        boolean done = park(member, partition, event, event, deadLetters.step(member, event, text, attempts));
        if (done) {
            deadLetters.appended(member, event.partition());
            LOG.warn("Event {} went to {}: {}", event.position(), spec.deadLetterStream(), text);
            member.listeners().tell(l -> l.deadLettered(event, spec.name(), attempts, error));
        }
        return done;
    }

    private boolean parkKey(
            ShardMember member,
            OwnedPartition partition,
            StoredEvent event,
            String key,
            String text,
            int attempts,
            Throwable error) {
        if (partition.parkedKeys() >= PARKED_KEYS_MAX) {
            stop(member, partition, "offset " + event.offset() + ": " + PARKED_KEYS_MAX + " keys are parked; " + text);
            return false;
        }
        var table = member.shard().tables().parkedEvents();
        boolean done = park(member, partition, event, event, connection -> {
            table.parkKey(connection, member.consumerId(), partition.partition(), key);
            table.park(connection, member.consumerId(), List.of(event), text, attempts);
        });
        if (done) {
            partition.parked(key);
            LOG.warn("Key of event {} is parked: {}", event.position(), text);
            member.listeners().tell(l -> l.keyParked(event, spec.name(), attempts, error));
        }
        return done;
    }

    /**
     * Sets events aside whose keys are parked.
     *
     * @param events with gapless offsets
     * @return whether to go on with the next one
     */
    boolean parkBehind(ShardMember member, OwnedPartition partition, List<StoredEvent> events) {
        var table = member.shard().tables().parkedEvents();
        return park(
                member,
                partition,
                events.getFirst(),
                events.getLast(),
                connection -> table.park(connection, member.consumerId(), events, BEHIND_PARKED, 0));
    }

    /** Runs the step and advances the offset in one transaction, until it succeeds or the partition ends. */
    private boolean park(ShardMember member, OwnedPartition partition, StoredEvent first, StoredEvent last, Step step) {
        long next = last.offset() + 1;
        if (!commitWith(member, partition, first.offset(), next, step, Failures::neverSucceeds)) {
            return false;
        }
        partition.handled(first.offset(), next);
        member.threads().committer().request(member);
        return true;
    }

    /** The same without any event being passed: only proves that the partition is still held. */
    boolean commitWith(ShardMember member, OwnedPartition partition, Step step) {
        return commitWith(member, partition, NO_EVENT, NO_EVENT, step, Failures::neverSucceeds);
    }

    private static boolean neverSucceeds(SQLException e) {
        return (SqlErrors.isRefused(e) && !SqlErrors.state(e).equals(SqlErrors.STALE_BATCH))
                || SqlErrors.isDataError(e);
    }

    /** Tries until it succeeds or the partition ends. After a hopeless error the partition is stopped. */
    private boolean commitWith(
            ShardMember member,
            OwnedPartition partition,
            long first,
            long next,
            Step step,
            Predicate<SQLException> isHopeless) {
        for (int failures = 0; !partition.isGivenUp(); failures++) {
            try {
                if (member.threads().committer().commitWith(member, partition, first, next, step)) {
                    return true;
                }
            } catch (SQLException e) {
                if (deadLetters.addedSegment(member, partition.partition(), e)) {
                    continue;
                }
                if (isHopeless.test(e)) {
                    stop(member, partition, "an event could not be set aside: " + text(e));
                    return false;
                }
                LOG.warn(
                        "What failed on {} could not be stored, tried again: {}", member.name(partition), e.toString());
            }
            if (isClosingAfter(Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failures, 10)))) {
                return false;
            }
        }
        return false;
    }

    /** Stops the partition, visibly: it is handled again when it is resumed. */
    void stop(ShardMember member, OwnedPartition partition, String error) {
        long next = partition.progress().toOffset();
        Step store = connection -> member.shard()
                .tables()
                .leases()
                .stop(connection, member.consumerId(), member.memberId(), partition.partition(), error);
        if (partition.beginStop() && commitWith(member, partition, NO_EVENT, NO_EVENT, store, e -> false)) {
            LOG.error("{} stops at offset {}: {}", member.name(partition), next, error);
            member.listeners().tell(l -> l.partitionStopped(member.name(partition), next, error));
            member.remove(partition, Reason.STOPPED);
        }
    }

    /** The event to be handled next does not exist. */
    void outOfRange(ShardMember member, OwnedPartition partition, long next, long logStart, long head) {
        if (next > head) {
            stop(
                    member,
                    partition,
                    "offset " + next + " is beyond the log's head " + head
                            + ": the log has lost its end, or it is another log");
        } else if (spec.outOfRangePolicy() == OutOfRangePolicy.FAIL) {
            stop(member, partition, "offset " + next + " is gone: the log begins at " + logStart);
        } else {
            move(member, partition, spec.outOfRangePolicy() == OutOfRangePolicy.EARLIEST ? logStart : head, next);
        }
    }

    private void move(ShardMember member, OwnedPartition partition, long to, long from) {
        try {
            member.shard()
                    .require()
                    .transaction(c -> member.shard()
                            .tables()
                            .leases()
                            .seek(c, member.consumerId(), partition.partition(), to, partition.epoch()));
            LOG.warn("{} goes on at offset {}: offset {} is gone", member.name(partition), to, from);
            member.remove(partition, Reason.LOST);
        } catch (SQLException e) {
            LOG.warn("{} could not be moved, tried again: {}", member.name(partition), e.toString());
        }
        member.threads().keeper().beatSoon();
    }

    private boolean isClosingAfter(long delayMs) {
        try {
            return closing.await(delayMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    /** What is tried again is given up. */
    void close() {
        closing.countDown();
    }

    static String text(Throwable error) {
        String text = error.toString();
        return text.length() <= ERROR_LENGTH_MAX ? text : text.substring(0, ERROR_LENGTH_MAX);
    }
}
