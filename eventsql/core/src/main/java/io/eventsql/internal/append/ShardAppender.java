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

/** Appends to one shard: the queue of calls and the platform threads that process it. Thread-safe. */
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
            PublishListeners listeners) {
        this.shard = shard;
        AcknowledgedBatches acknowledged = new AcknowledgedBatches(shard, producer, listeners);
        shard.addAnchors(acknowledged);
        this.queue = new PublishQueue(
                new PendingCalls(settings.appendConnections(), settings.maxBatchEvents(), settings.maxBatchBytes()),
                settings.bufferBytes());
        for (int number = 0; number < settings.appendConnections(); number++) {
            threads.add(new AppendThread(
                    number,
                    new Appender(
                            shard, producer, settings, queue, segments, wakeUp, rerouter, listeners, acknowledged)));
        }
        threads.forEach(Thread::start);
    }

    /** Moves calls without keys from an unavailable shard to others. */
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
                for (Batch batch = queue.finishAndTake(null); batch != null; batch = queue.finishAndTake(batch)) {
                    append(batch);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // close() has reached its deadline
            }
        }

        /** The thread must survive any failure: otherwise the batch's lanes would stay reserved. */
        private void append(Batch batch) throws InterruptedException {
            try {
                appender.append(batch);
            } catch (RuntimeException | Error e) {
                LOG.error("Append to {} failed unexpectedly; failing its calls", shard, e);
                String reason = "the append failed unexpectedly: " + e;
                batch.calls().forEach(call -> call.abort(reason, reason, e));
            }
        }
    }

    void put(PublishCall call) {
        queue.put(call);
    }

    /** Accepts a call rerouted from another shard if the buffer has room; otherwise returns {@code false}. */
    boolean offer(PublishCall call) {
        return queue.offer(call);
    }

    /** Releases the calls that another shard has accepted and takes back the others. */
    void finishRerouting(List<PublishCall> moved, List<PublishCall> staying) {
        queue.finishRerouting(moved, staying);
    }

    /** Fails the calls whose deadline has passed and aborts hung connections. */
    void expire(long nowNanos) {
        queue.expire(nowNanos, shard.lastFailure());
        threads.forEach(thread -> thread.appender.abortIfHung(nowNanos));
    }

    BufferState bufferState() {
        return queue.bufferState(shard.number(), shard.name());
    }

    void stopAccepting() {
        queue.close();
    }

    /**
     * Appends the waiting calls until the deadline, fails the rest, and ends the threads.
     *
     * @return whether all calls were appended
     */
    boolean close(long deadlineNanos) throws InterruptedException {
        queue.close();
        boolean empty = queue.awaitEmpty(deadlineNanos - System.nanoTime());
        if (!empty) {
            queue.abort();
            threads.forEach(Thread::interrupt);
        }
        for (AppendThread thread : threads) {
            long left = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
            thread.join(Math.max(left, 1));
        }
        return empty;
    }
}
