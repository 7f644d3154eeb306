package io.eventsql.internal.wake;

import io.eventsql.Settings;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Carries the news that a stream has new events: directly to the fetchers of this process, by NOTIFY to other
 * processes. A signal may be lost (a dead connection); fetchers look by themselves from time to time. Thread-safe.
 */
public final class WakeUp {
    private final List<Notifier> notifiers = new ArrayList<>();
    private final List<Listener> listeners = new ArrayList<>();
    private final List<List<WakeUpTarget>> targets = new ArrayList<>();

    public WakeUp(Shards shards, Settings settings) {
        String self = UUID.randomUUID().toString();
        for (Shard shard : shards.all()) {
            List<WakeUpTarget> ofShard = new CopyOnWriteArrayList<>();
            targets.add(ofShard);
            notifiers.add(new Notifier(shard, self, settings.notifyInterval()));
            listeners.add(new Listener(shard, self, settings.networkTimeout(), ofShard));
        }
    }

    /** Says that events were appended to a partition. Cheap: called for each partition of each batch. */
    public void appended(Shard shard, int streamId, int partition) {
        for (WakeUpTarget target : targets.get(shard.number())) {
            target.wake(streamId, partition);
        }
        notifiers.get(shard.number()).request(new Signal.News(streamId, partition));
    }

    /** Says that members of a consumer came or went, or that its state was changed. */
    public void consumerChanged(Shard shard, int consumerId) {
        for (WakeUpTarget target : targets.get(shard.number())) {
            target.consumerChanged(consumerId);
        }
        notifiers.get(shard.number()).request(Signal.News.ofConsumer(consumerId));
    }

    /** From now on the target is told of new events on the shard, also of those of other processes. */
    public void register(Shard shard, WakeUpTarget target) {
        targets.get(shard.number()).add(target);
        listeners.get(shard.number()).start();
    }

    /** Ends the threads. */
    public void close() throws InterruptedException {
        for (Notifier notifier : notifiers) {
            notifier.close();
        }
        for (Listener listener : listeners) {
            listener.close();
        }
    }
}
