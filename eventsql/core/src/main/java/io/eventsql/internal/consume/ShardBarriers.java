package io.eventsql.internal.consume;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.ShardBarrierTable;
import io.eventsql.internal.sql.ShardBarrierTable.Awaited;
import io.eventsql.internal.sql.ShardBarrierTable.Passed;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports to shards that have received keys what consumers have handled on the shards that gave them, and which keys are parked
 * there: databases do not see each other. Members that lack partitions or have parked keys ask for it; one thread for all of them,
 * because a shard may be unavailable. Thread-safe.
 *
 * <p>A report counts only if the consumer was not moved on the giver since it was read there: see {@link ConsumerSeek}.
 */
final class ShardBarriers {
    private static final Logger LOG = LoggerFactory.getLogger(ShardBarriers.class);

    /** The process of a seek has died if reports are still rejected after this time; or it tries again. */
    private static final long SEEK_MAX_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final Shards shards;
    private final WakeUp wakeUp;
    private final ServiceThread thread = new ServiceThread("eventsql-shard-barriers", this::checkNext);
    private final LinkedHashSet<Request> requests = new LinkedHashSet<>();
    /** Those of receivers. */
    private final FailureSeries failures = new FailureSeries();

    private final Map<Shard, FailureSeries> failuresOfGivers = new HashMap<>();
    private final Map<Barrier, Rejection> rejections = new HashMap<>();
    private boolean started;

    ShardBarriers(Shards shards, WakeUp wakeUp) {
        this.shards = shards;
        this.wakeUp = wakeUp;
    }

    private record Request(Shard shard, StreamSpec stream, String consumer, int consumerId) {}

    /** What a consumer must have handled on one shard. */
    private record Giver(int version, int shard) {}

    /**
     * What a consumer has handled on one shard.
     *
     * @param seeks how often it had been moved there before
     * @param parkedKeys the hash of each key that has moved from there to the receiver, and is still parked there
     */
    private record Report(long seeks, Map<String, Long> parkedKeys) {}

    /** What a consumer waits for on one shard because of another one. */
    private record Barrier(Shard receiver, int consumerId, Shard giver) {}

    /**
     * The first rejection of a report since the receiver requires that the consumer was moved so often before.
     *
     * @param required how often on the giver
     * @param atNanos when it was (nano time)
     */
    private record Rejection(long required, long atNanos) {}

    /** Checks soon whether a consumer waits on a shard for what it has handled or redriven on others in the meantime. */
    synchronized void request(Shard shard, Membership membership) {
        if (shards.size() == 1) {
            return;
        }
        requests.add(new Request(shard, membership.stream(), membership.spec().name(), membership.consumerId()));
        if (!started) {
            started = true;
            thread.start();
        }
        notifyAll();
    }

    private synchronized Request take() throws InterruptedException {
        while (requests.isEmpty()) {
            wait();
        }
        return requests.removeFirst();
    }

    private void checkNext() throws InterruptedException {
        Request request = take();
        try {
            check(request);
            failures.end();
        } catch (SQLException | RuntimeException e) {
            report(request, e, failures);
        }
    }

    /** Data sources have exceptions of their own. The member asks again. */
    private static void report(Request request, Exception e, FailureSeries series) {
        String reason = e instanceof SQLException sql ? SqlErrors.message(sql) : e.toString();
        if (series.add(reason).isNew()) {
            LOG.warn(
                    "Could not find out what consumer {} of stream {} has handled on other shards than {}; retrying: {}",
                    request.consumer(),
                    request.stream().name(),
                    request.shard(),
                    reason);
        }
    }

    private void check(Request request) throws SQLException {
        Shard receiver = request.shard();
        List<Awaited> awaited =
                receiver.require().read(c -> receiver.tables().shardBarriers().awaited(c, request.consumerId()));
        Map<Giver, List<Awaited>> byGiver = awaited.stream()
                .collect(Collectors.groupingBy(
                        one -> new Giver(one.version(), one.giver()), LinkedHashMap::new, Collectors.toList()));
        boolean changed = false;
        for (var entry : byGiver.entrySet()) {
            Shard giver = shards.get(entry.getKey().shard());
            FailureSeries series = failuresOfGivers.computeIfAbsent(giver, g -> new FailureSeries());
            try {
                changed |= check(request, giver, entry.getKey().version(), entry.getValue());
                series.end();
            } catch (SQLException | RuntimeException e) { // other givers may answer
                report(request, e, series);
            }
        }
        if (changed) {
            wakeUp.consumerChanged(receiver, request.consumerId());
        }
    }

    private boolean check(Request request, Shard giver, int version, List<Awaited> partitions) throws SQLException {
        OptionalInt streamId = giver.streams().readId(request.stream());
        if (streamId.isEmpty()) {
            return false;
        }
        OptionalInt consumerId =
                giver.require().read(c -> giver.tables().consumers().id(c, streamId.getAsInt(), request.consumer()));
        if (consumerId.isEmpty()) {
            return false; // the consumer is going to be registered there, and to handle what is there
        }
        int idOfGiver = consumerId.getAsInt();
        Optional<Report> found = read(giver, idOfGiver, request.shard(), version, partitions);
        if (found.isEmpty()) {
            return false;
        }
        Report report = found.get();
        Shard receiver = request.shard();
        Passed passed = receiver.require()
                .transaction(c -> receiver.tables()
                        .shardBarriers()
                        .pass(c, request.consumerId(), version, giver.number(), report.seeks(), report.parkedKeys()));
        Barrier barrier = new Barrier(receiver, request.consumerId(), giver);
        if (passed.accepted()) {
            rejections.remove(barrier);
        } else {
            ShardBarrierTable barriers = receiver.tables().shardBarriers();
            long required = receiver.require().read(c -> barriers.seeks(c, request.consumerId(), giver.number()));
            if (isInterrupted(barrier, required)) {
                countSeeks(request, giver, idOfGiver, report.seeks(), required);
            }
        }
        return passed.changed();
    }

    /** Returns whether the consumer was to be moved on the giver, and that was interrupted: it lasts too long. */
    private boolean isInterrupted(Barrier barrier, long required) {
        Rejection first = rejections.get(barrier);
        if (first == null || first.required() != required) {
            rejections.put(barrier, new Rejection(required, System.nanoTime()));
            return false;
        }
        return System.nanoTime() - first.atNanos() > SEEK_MAX_NANOS;
    }

    /**
     * Counts on the giver, where nothing is moved, until it has as many seeks as the receiver requires: what is read after this is
     * accepted. Does nothing if the consumer was moved there since the report was read.
     */
    private static void countSeeks(Request request, Shard giver, int idOfGiver, long seeks, long required)
            throws SQLException {
        giver.readSlots();
        boolean counted = giver.require().transaction(c -> {
            ShardBarrierTable barriers = giver.tables().shardBarriers();
            boolean isCurrent = barriers.countSeek(c, idOfGiver, seeks, giver.mapVersion());
            if (isCurrent) {
                barriers.raiseSeeks(c, idOfGiver, giver.number(), required);
            }
            return isCurrent;
        });
        if (counted) {
            LOG.info(
                    "A seek or deletion of consumer {} of stream {} has not completed on {}; {} no longer waits for it",
                    request.consumer(),
                    request.stream().name(),
                    giver,
                    request.shard());
        }
    }

    /** Returns nothing if the consumer has not handled the partitions yet. */
    private static Optional<Report> read(
            Shard giver, int consumerId, Shard receiver, int version, List<Awaited> partitions) throws SQLException {
        return giver.require().transaction(c -> {
            ShardBarrierTable barriers = giver.tables().shardBarriers();
            Long seeks = barriers.hasHandled(c, consumerId, giver.number(), version, partitions);
            if (seeks == null) {
                return Optional.empty();
            }
            // No other key that has moved is parked from now on, because all events of these keys are handled.
            Set<Integer> moved = barriers.closedSlots(c, version, receiver.number());
            Map<String, Long> parkedKeys = new HashMap<>();
            for (String key : barriers.keysToMove(c, consumerId, version, partitions)) {
                long hash = KeyHash.of(key);
                if (moved.contains(KeyHash.slot(hash))) {
                    parkedKeys.put(key, hash);
                }
            }
            return Optional.of(new Report(seeks, parkedKeys));
        });
    }

    void close(CloseDeadline deadline) throws InterruptedException {
        thread.closeNow();
        synchronized (this) {
            if (!started) {
                return;
            }
        }
        deadline.join(thread);
    }
}
