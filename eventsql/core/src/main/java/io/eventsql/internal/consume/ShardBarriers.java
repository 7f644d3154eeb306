package io.eventsql.internal.consume;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.ShardBarrierTable;
import io.eventsql.internal.sql.ShardBarrierTable.Awaited;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports to shards that have received keys what consumers have handled on the shards that gave them: databases do not see each
 * other. Members that lack partitions ask for it; one thread for all of them, because a shard may be unavailable. Thread-safe.
 *
 * <p>A report counts only if the consumer was not moved on the giver since it was read there: see {@link Control}.
 */
final class ShardBarriers {
    private static final Logger LOG = LoggerFactory.getLogger(ShardBarriers.class);

    private final Shards shards;
    private final WakeUp wakeUp;
    private final ServiceThread thread = new ServiceThread("eventsql-shard-barriers", this::checkNext);
    private final LinkedHashSet<Request> requests = new LinkedHashSet<>();
    private final FailureSeries failures = new FailureSeries();
    private boolean started;

    ShardBarriers(Shards shards, WakeUp wakeUp) {
        this.shards = shards;
        this.wakeUp = wakeUp;
    }

    private record Request(Shard shard, StreamSpec stream, String consumer, int consumerId) {}

    /** What a consumer must have handled on one shard. */
    private record Giver(int version, int shard) {}

    /** Checks soon whether a consumer waits on a shard for what it has handled on others in the meantime. */
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
        } catch (SQLException
                | RuntimeException e) { // data sources have exceptions of their own; the member asks again
            String reason = e instanceof SQLException sql ? SqlErrors.message(sql) : e.toString();
            if (failures.add(reason).isNew()) {
                LOG.warn(
                        "Could not find out what consumer {} of stream {} has handled on other shards than {}; retrying: {}",
                        request.consumer(),
                        request.stream().name(),
                        request.shard(),
                        reason);
            }
        }
    }

    private void check(Request request) throws SQLException {
        Shard receiver = request.shard();
        List<Awaited> awaited =
                receiver.require().read(c -> receiver.tables().shardBarriers().awaited(c, request.consumerId()));
        Map<Giver, List<Awaited>> byGiver = awaited.stream()
                .collect(Collectors.groupingBy(
                        one -> new Giver(one.version(), one.giver()), LinkedHashMap::new, Collectors.toList()));
        boolean passed = false;
        for (var entry : byGiver.entrySet()) {
            passed |= check(request, entry.getKey(), entry.getValue());
        }
        if (passed) {
            wakeUp.consumerChanged(receiver, request.consumerId());
        }
    }

    private boolean check(Request request, Giver from, List<Awaited> partitions) throws SQLException {
        Shard giver = shards.get(from.shard());
        OptionalInt streamId = giver.readStreamId(request.stream());
        if (streamId.isEmpty()) {
            return false;
        }
        OptionalInt consumerId =
                giver.require().read(c -> giver.tables().consumers().id(c, streamId.getAsInt(), request.consumer()));
        if (consumerId.isEmpty()) {
            return false; // the consumer is going to be registered there, and to handle what is there
        }
        int idOfGiver = consumerId.getAsInt();
        Optional<Long> handled = giver.require().transaction(c -> {
            ShardBarrierTable barriers = giver.tables().shardBarriers();
            Long found = barriers.hasHandled(c, idOfGiver, giver.number(), from.version(), partitions);
            if (found == null) {
                return Optional.empty();
            }
            // No key that has moved is parked from now on, because all of its events are handled.
            Set<Integer> closed = barriers.closedSlots(c, from.version());
            boolean isParked = giver
                    .tables()
                    .parkedEvents()
                    .parkedKeys(
                            c,
                            idOfGiver,
                            partitions.stream().map(Awaited::partition).toList())
                    .values()
                    .stream()
                    .flatMap(Set::stream)
                    .anyMatch(key -> closed.contains(KeyHash.slot(KeyHash.of(key))));
            return isParked ? Optional.empty() : Optional.of(found);
        });
        if (handled.isEmpty()) {
            return false;
        }
        long seeks = handled.get();
        Shard receiver = request.shard();
        boolean passed = receiver.require()
                .transaction(c -> receiver.tables()
                        .shardBarriers()
                        .pass(c, request.consumerId(), from.version(), from.shard(), seeks));
        if (!passed) { // it was to be moved on the giver, and that was interrupted: what is read after this counts
            giver.readSlots();
            giver.require()
                    .transaction(
                            c -> giver.tables().shardBarriers().countSeek(c, idOfGiver, seeks, giver.mapVersion()));
        }
        return passed;
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
