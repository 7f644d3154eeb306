package io.eventsql.internal.append;

import io.eventsql.Settings;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.wake.WakeUp;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** Appends to one shard: the queue of calls and the lanes that empty it, each a platform thread. Thread-safe. */
final class ShardAppender {
    private final Shard shard;
    private final PublishQueue queue;
    private final List<Lane> lanes = new ArrayList<>();

    ShardAppender(
            Shard shard, UUID producer, Settings settings, SegmentKeeper segments, WakeUp wakeUp, Rerouter rerouter) {
        this.shard = shard;
        this.queue = new PublishQueue(
                settings.appendConnections(),
                settings.bufferBytes(),
                settings.maxBatchEvents(),
                settings.maxBatchBytes());
        for (int lane = 0; lane < settings.appendConnections(); lane++) {
            lanes.add(new Lane(lane, new Appender(shard, producer, queue, segments, wakeUp, rerouter)));
        }
        lanes.forEach(Lane::start);
    }

    /** Finds another shard for calls without keys that wait for a shard that does not answer. */
    @FunctionalInterface
    interface Rerouter {
        void reroute(Shard from, List<PublishCall> calls);
    }

    private final class Lane extends Thread {
        private final int lane;
        private final Appender appender;

        Lane(int lane, Appender appender) {
            super("eventsql-append-" + shard.name() + "-" + lane);
            setDaemon(true);
            this.lane = lane;
            this.appender = appender;
        }

        @Override
        public void run() {
            try {
                for (Batch batch = queue.take(lane); batch != null; batch = queue.take(lane)) {
                    try {
                        appender.append(batch);
                    } finally {
                        queue.done(batch);
                    }
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // close() has given up waiting
            }
        }
    }

    void put(PublishCall call) {
        queue.put(call);
    }

    /** Takes a call from another shard, if there is room at once. */
    boolean offer(PublishCall call) {
        return queue.offer(call);
    }

    /** Takes a call back that found no other shard. */
    void putBack(PublishCall call) {
        queue.putBack(call);
    }

    /** Fails the calls whose deadline has passed. */
    void expire(long nowNanos) {
        queue.expire(nowNanos, shard.lastFailure());
    }

    long bufferedBytes() {
        return queue.bufferedBytes();
    }

    void stopAccepting() {
        queue.close();
    }

    /**
     * Ends the lanes: what waits is appended until the deadline, then failed.
     *
     * @return whether everything was appended
     */
    boolean close(long deadlineNanos) throws InterruptedException {
        queue.close();
        boolean empty = queue.awaitEmpty(deadlineNanos - System.nanoTime());
        if (!empty) {
            queue.abandon();
            lanes.forEach(Thread::interrupt);
        }
        for (Lane lane : lanes) {
            long left = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
            lane.join(Math.max(left, 1));
        }
        return empty;
    }
}
