package io.eventsql.internal.append;

import io.eventsql.BufferState;
import io.eventsql.Settings;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.thread.ServiceThread;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Appends to one shard: the queue of calls and the platform threads that process it. Thread-safe. */
final class ShardAppender {
    private static final Logger LOG = LoggerFactory.getLogger(ShardAppender.class);
    /** Granted to the threads after their connections were interrupted, even if the deadline has passed. */
    private static final long CLOSE_NANOS_MIN = TimeUnit.MILLISECONDS.toNanos(1);

    private static final long FAIL_RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final Shard shard;
    private final PublishQueue queue;
    private final Continuations continuations;
    private final List<AppendLoop> loops = new ArrayList<>();

    ShardAppender(Shard shard, PublishContext context, Rerouter rerouter, PublishQueue.CallRouting routing) {
        this.shard = shard;
        Settings settings = context.settings();
        AcknowledgedBatches acknowledged = new AcknowledgedBatches(shard, context.listeners());
        shard.addAnchors(acknowledged);
        this.queue = new PublishQueue(
                new PendingCalls(settings.appendConnections(), settings.maxBatchEvents(), settings.maxBatchBytes()),
                new CommitPace(settings.maxCommitDelay().toNanos()),
                settings.bufferBytes(),
                routing);
        this.continuations = new Continuations(shard.name());
        AtomicLong lastSuccessNanos = new AtomicLong(System.nanoTime());
        for (int number = 0; number < settings.appendConnections(); number++) {
            loops.add(new AppendLoop(
                    number,
                    new Appender(shard, context, queue, rerouter, lastSuccessNanos, acknowledged, continuations)));
        }
        loops.forEach(loop -> loop.thread.start());
    }

    /** Moves calls without keys from an unavailable shard to others. */
    @FunctionalInterface
    interface Rerouter {
        void reroute(Shard from, List<PublishCall> calls);
    }

    /** One append thread: takes a batch, appends it, and releases it when it takes the next one. */
    private final class AppendLoop {
        private final Appender appender;
        private final ServiceThread thread;
        private @Nullable Batch last;

        AppendLoop(int number, Appender appender) {
            this.appender = appender;
            this.thread = new ServiceThread("eventsql-append-" + shard.name() + "-" + number, this::appendNext);
        }

        private void appendNext() throws InterruptedException {
            Batch batch = queue.finishAndTake(last);
            last = batch;
            if (batch == null) {
                thread.close(); // the queue is closed and empty
            } else {
                append(batch);
            }
        }

        private void append(Batch batch) {
            try {
                appender.append(batch);
            } catch (Throwable e) { // its calls must be completed, whatever failed
                batch.calls().forEach(call -> fail(call, e));
                LOG.error("Append to {} failed unexpectedly; failing its calls", shard, e);
            } finally {
                continuations.start();
            }
        }

        /** Repeats it as long as there is no memory for it: nothing else completes the call once its batch is released. */
        private static void fail(PublishCall call, Throwable failure) {
            while (!call.isCompleted()) {
                try {
                    call.failUnexpectedly(failure);
                } catch (Throwable again) {
                    LockSupport.parkNanos(FAIL_RETRY_NANOS);
                }
            }
        }
    }

    /** Returns {@code false} if the call must be routed anew, because the shard has closed slots since it was routed. */
    boolean put(PublishCall call) {
        boolean accepted = queue.put(call);
        if (call.isCompleted()) {
            continuations.start();
        }
        return accepted;
    }

    /** Adds a call that has waited in the queue of another shard. */
    void accept(PublishCall call) {
        queue.accept(call);
    }

    /** Has the waiting calls routed anew before the next batch, because the shard has closed slots. */
    void requireRerouting() {
        queue.requireRerouting();
    }

    /** Accepts a call rerouted from another shard if the buffer has room; otherwise returns {@code false}. */
    boolean offer(PublishCall call) {
        return queue.offer(call);
    }

    /** Releases the calls that another shard has accepted and takes back the others. */
    void finishRerouting(List<PublishCall> moved, List<PublishCall> staying) {
        queue.finishRerouting(moved, staying);
    }

    /** Returns what completes the futures of asynchronous calls. */
    Executor continuations() {
        return continuations;
    }

    /** Fails the calls whose deadline has passed and aborts hung connections. */
    void expire(long nowNanos) {
        queue.expire(nowNanos, shard.lastFailure());
        continuations.overtakeBlocked();
        loops.forEach(loop -> loop.appender.abortIfHung(nowNanos));
    }

    BufferState bufferState() {
        return queue.bufferState(shard.number(), shard.name());
    }

    void stopAccepting() {
        queue.close();
    }

    private void reportCutOff(BufferState buffer) {
        LOG.warn(
                "Closing before all events were appended to {}: failing {} calls that were not sent and those in flight, {}"
                        + " bytes in total",
                shard,
                buffer.waitingCalls(),
                buffer.bytes());
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
            reportCutOff(bufferState());
            queue.abort(shard.lastFailure());
            loops.forEach(loop -> loop.thread.closeNow());
        }
        for (AppendLoop loop : loops) {
            if (!loop.thread.join(Math.max(deadlineNanos - System.nanoTime(), CLOSE_NANOS_MIN))) {
                LOG.warn("An append to {} is still running; closing without it", shard);
            }
        }
        // Fails calls that other shards pass on from here on: no thread would append them.
        queue.abort(shard.lastFailure());
        continuations.close(deadlineNanos);
        return empty;
    }
}
