package io.eventsql.internal.wake;

import io.eventsql.Settings;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/**
 * Signals that a stream has new events or that a consumer has changed: directly to targets in this process, with NOTIFY to
 * other processes. A signal may be lost with its connection, so targets must also poll. Thread-safe.
 */
public final class WakeUp {
    private static final long CLOSE_WAIT_MAX_MS = 1_000;

    private final List<Notifier> notifiers = new ArrayList<>();
    private final List<Listener> listeners = new ArrayList<>();
    private final List<List<WakeUpTarget>> targets = new ArrayList<>();

    public WakeUp(Shards shards, Settings settings) {
        String self = UUID.randomUUID().toString();
        for (Shard shard : shards.numbered()) { // by number
            List<WakeUpTarget> ofShard = new CopyOnWriteArrayList<>();
            targets.add(ofShard);
            Notifier notifier = new Notifier(shard, self, settings.notifyInterval());
            notifiers.add(notifier);
            listeners.add(new Listener(shard, self, notifier, settings.networkTimeout(), ofShard));
        }
    }

    /** Signals that events were appended to a partition. Cheap, because it is called for each partition of each batch. */
    public void appended(Shard shard, int streamId, int partition) {
        for (WakeUpTarget target : targets.get(shard.number())) {
            target.wake(streamId, partition);
        }
        notifiers.get(shard.number()).request(new Signal.Change(streamId, partition));
    }

    /** Signals that the members or the state of a consumer have changed. */
    public void consumerChanged(Shard shard, int consumerId) {
        for (WakeUpTarget target : targets.get(shard.number())) {
            target.consumerChanged(consumerId);
        }
        notifiers.get(shard.number()).request(Signal.Change.ofConsumer(consumerId));
    }

    /** Signals that partitions have changed, to all consumers of a stream on a shard. */
    public void consumersChanged(Shard shard, int streamId) throws SQLException {
        for (int consumer : shard.require().read(c -> shard.tables().consumers().ids(c, streamId))) {
            consumerChanged(shard, consumer);
        }
    }

    /** Registers a target for the signals of a shard, including those of other processes. */
    public void register(Shard shard, WakeUpTarget target) {
        targets.get(shard.number()).add(target);
        listeners.get(shard.number()).start();
    }

    /** Sends the pending signals and ends all threads, at most until the deadline. */
    public void close(long deadlineNanos) throws InterruptedException {
        notifiers.forEach(Notifier::close);
        listeners.forEach(Listener::close);
        for (Notifier notifier : notifiers) {
            notifier.awaitClosed(waitMs(deadlineNanos));
        }
        for (Listener listener : listeners) {
            listener.awaitClosed(waitMs(deadlineNanos));
        }
    }

    private static long waitMs(long deadlineNanos) {
        long leftMs = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
        return Math.clamp(leftMs, 1, CLOSE_WAIT_MAX_MS);
    }
}
