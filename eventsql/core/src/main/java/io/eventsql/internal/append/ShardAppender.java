package io.eventsql.internal.append;

import io.eventsql.BufferState;
import io.eventsql.Settings;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.wake.WakeUp;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Appends to one shard: the queue of calls and the platform threads that empty it. Thread-safe. */
final class ShardAppender {
    private static final Logger LOG = LoggerFactory.getLogger(ShardAppender.class);

    private final Shard shard;
    private final PublishQueue queue;
    private final List<AppendThread> threads = new ArrayList<>();

    ShardAppender(
            Shard shard,
            UUID producer,
            Settings settings,
            SegmentKeeper segments,
            WakeUp wakeUp,
            Rerouter rerouter,
            PublishListeners news) {
        this.shard = shard;
        this.queue = new PublishQueue(
                new PendingCalls(settings.appendConnections(), settings.maxBatchEvents(), settings.maxBatchBytes()),
                settings.bufferBytes());
        for (int number = 0; number < settings.appendConnections(); number++) {
            threads.add(new AppendThread(
                    number, new Appender(shard, producer, settings, queue, segments, wakeUp, rerouter, news)));
        }
        threads.forEach(Thread::start);
    }

    /** Finds another shard for calls without keys that wait for a shard that does not answer. */
    @FunctionalInterface
    interface Rerouter {
        void reroute(Shard from, List<PublishCall> calls);
    }

    private final class AppendThread extends Thread {
        private final Appender appender;

        AppendThread(int number, Appender appender) {
            super("eventsql-append-" + shard.name() + "-" + number);
            setDaemon(true);
            this.appender = appender;
        }

        @Override
        public void run() {
            try {
                for (Batch batch = queue.next(null); batch != null; batch = queue.next(batch)) {
                    append(batch);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // close() has given up waiting
            }
        }

        /** Whatever goes wrong, the thread must go on: the batch's lanes would be taken for ever. */
        private void append(Batch batch) throws InterruptedException {
            try {
                appender.append(batch);
            } catch (RuntimeException | Error e) {
                LOG.error("Appending to {} failed", shard, e);
                String reason = "appending failed: " + e;
                batch.calls().forEach(call -> call.giveUp(reason, reason, e));
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

    /** Lets go the calls that another shard has taken, and takes back those that found none. */
    void giveBack(List<PublishCall> moved, List<PublishCall> staying) {
        queue.giveBack(moved, staying);
    }

    /** Gives up the calls whose deadline has passed, and appends whose connection has hung for too long. */
    void expire(long nowNanos) {
        queue.expire(nowNanos, shard.lastFailure());
        threads.forEach(thread -> thread.appender.abortIfHanging(nowNanos));
    }

    BufferState buffer() {
        return queue.state(shard.number(), shard.name());
    }

    void stopAccepting() {
        queue.close();
    }

    /**
     * Ends the threads: what waits is appended until the deadline, then failed.
     *
     * @return whether everything was appended
     */
    boolean close(long deadlineNanos) throws InterruptedException {
        queue.close();
        boolean empty = queue.awaitEmpty(deadlineNanos - System.nanoTime());
        if (!empty) {
            queue.abandon();
            threads.forEach(Thread::interrupt);
        }
        for (AppendThread thread : threads) {
            long left = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
            thread.join(Math.max(left, 1));
        }
        return empty;
    }
}
