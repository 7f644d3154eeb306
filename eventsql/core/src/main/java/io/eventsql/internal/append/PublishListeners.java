package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import io.eventsql.internal.thread.ForeignErrors;
import io.eventsql.internal.thread.ServiceThread;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Calls the user's listeners on a thread of their own, one callback after the other, and logs their exceptions. A listener
 * that is too slow loses callbacks, but does not slow down publishing. Thread-safe.
 */
public final class PublishListeners {
    private static final Logger LOG = LoggerFactory.getLogger(PublishListeners.class);
    private static final int WAITING_MAX = 10_000;
    private static final long CLOSE_CHECK_MS = 5;

    private final List<PublishListener> listeners;
    private final BlockingQueue<Consumer<PublishListener>> waiting;
    /** Since the listeners were last too slow. */
    private final AtomicLong dropped = new AtomicLong();
    /** Since this instance was created. */
    private final AtomicLong droppedInTotal = new AtomicLong();

    private final ServiceThread thread = new ServiceThread("eventsql-publish-listeners", this::callNext);
    /** The callbacks that wait or are being called. */
    private final AtomicInteger unfinished = new AtomicInteger();

    public PublishListeners(List<PublishListener> listeners) {
        this.listeners = List.copyOf(listeners);
        this.waiting = new ArrayBlockingQueue<>(listeners.isEmpty() ? 1 : WAITING_MAX);
        if (!listeners.isEmpty()) {
            thread.start();
        }
    }

    /** Used when there are no listeners. */
    public static PublishListeners none() {
        return new PublishListeners(List.of());
    }

    /** Returns how many callbacks were dropped since this instance was created, because the listeners were too slow. */
    long dropped() {
        return droppedInTotal.get();
    }

    void appended(int shard, Batch batch, List<PartitionGroup> groups, long nanos) {
        if (listeners.isEmpty()) {
            return;
        }
        Map<String, Integer> byStream = new HashMap<>();
        int events = 0;
        for (PartitionGroup group : groups) {
            byStream.merge(group.stream().name(), group.storedSize(), Integer::sum);
            events += group.storedSize();
        }
        PublishListener.Appended appended = new PublishListener.Appended(
                shard, batch.sentCalls(), events, batch.sentBytes(), nanos, Map.copyOf(byStream));
        notifyListeners(listener -> listener.appended(appended));
    }

    void appendFailed(int shard, Throwable error) {
        notifyListeners(listener -> listener.appendFailed(shard, error));
    }

    void historyLost(int shard, String stream, int partition, long fromOffset, long toOffset) {
        notifyListeners(listener -> listener.historyLost(shard, stream, partition, fromOffset, toOffset));
    }

    /** Returns callbacks that also notify the listeners of a failure. */
    PublishCall.Outcome observe(PublishCall.Outcome outcome, String stream, int events) {
        if (listeners.isEmpty()) {
            return outcome;
        }
        return new PublishCall.Outcome() {
            @Override
            public void stored(EventPosition[] positions, Executor continuations) {
                outcome.stored(positions, continuations);
            }

            @Override
            public void failed(EventSqlException failure) {
                outcome.failed(failure);
                try {
                    notifyListeners(listener -> listener.callFailed(stream, events, failure));
                } catch (OutOfMemoryError e) { // the call has failed all the same, and must not fail again
                    droppedInTotal.incrementAndGet();
                }
            }

            @Override
            public List<PublishCall.Outcome> divide(List<int[]> indexes) {
                List<PublishCall.Outcome> parts = outcome.divide(indexes);
                List<PublishCall.Outcome> observed = new ArrayList<>();
                for (int i = 0; i < parts.size(); i++) {
                    observed.add(observe(parts.get(i), stream, indexes.get(i).length));
                }
                return observed;
            }
        };
    }

    private void notifyListeners(Consumer<PublishListener> callback) {
        if (listeners.isEmpty()) {
            return;
        }
        if (thread.isClosing()) { // the failure of a call after the end, on its caller's thread
            listeners.forEach(listener -> call(listener, callback));
            return;
        }
        unfinished.incrementAndGet();
        if (!waiting.offer(callback)) {
            unfinished.decrementAndGet();
            droppedInTotal.incrementAndGet();
            if (dropped.getAndIncrement() == 0) {
                LOG.warn("Publish listeners are too slow: {} callbacks wait; dropping further ones", WAITING_MAX);
            }
        }
    }

    private void callNext() throws InterruptedException {
        Consumer<PublishListener> callback = waiting.take();
        try {
            for (PublishListener listener : listeners) {
                call(listener, callback);
            }
        } finally {
            unfinished.decrementAndGet();
        }
        if (waiting.isEmpty()) {
            reportDropped();
        }
    }

    private static void call(PublishListener listener, Consumer<PublishListener> callback) {
        try {
            callback.accept(listener);
        } catch (Throwable e) { // the other listeners are called all the same
            ForeignErrors.log(
                    e,
                    shown -> LOG.warn(
                            "Publish listener {} failed; continuing",
                            listener.getClass().getName(),
                            shown));
        }
    }

    private void reportDropped() {
        long count = dropped.getAndSet(0);
        if (count > 0) {
            LOG.warn("Publish listeners missed {} callbacks because they were too slow", count);
        }
    }

    /** Waits until the listeners were called for everything that happened, at most until the deadline; ends the thread. */
    void close(long deadlineNanos) throws InterruptedException {
        if (listeners.isEmpty()) {
            return;
        }
        while (unfinished.get() > 0 && deadlineNanos - System.nanoTime() > 0) {
            TimeUnit.MILLISECONDS.sleep(CLOSE_CHECK_MS);
        }
        if (unfinished.get() > 0) {
            LOG.warn("Publish listeners are too slow: closing without {} callbacks", unfinished.get());
        }
        reportDropped();
        thread.closeNow();
        thread.join(deadlineNanos - System.nanoTime());
    }
}
