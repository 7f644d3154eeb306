package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Calls the user's listeners and logs their exceptions. Thread-safe. */
public final class PublishListeners {
    private static final Logger LOG = LoggerFactory.getLogger(PublishListeners.class);

    private final List<PublishListener> listeners;

    public PublishListeners(List<PublishListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

    /** Used when there are no listeners. */
    public static PublishListeners none() {
        return new PublishListeners(List.of());
    }

    void appended(int shard, Batch batch, List<PartitionGroup> groups, long nanos) {
        if (listeners.isEmpty()) {
            return;
        }
        Map<String, Integer> byStream = new HashMap<>();
        int events = 0;
        for (PartitionGroup group : groups) {
            byStream.merge(group.stream().name(), group.size(), Integer::sum);
            events += group.size();
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
            public void stored(EventPosition[] positions) {
                outcome.stored(positions);
            }

            @Override
            public void failed(EventSqlException failure) {
                outcome.failed(failure);
                notifyListeners(listener -> listener.callFailed(stream, events, failure));
            }
        };
    }

    private void notifyListeners(Consumer<PublishListener> call) {
        for (PublishListener listener : listeners) {
            try {
                call.accept(listener);
            } catch (RuntimeException | Error e) { // must not end the append thread
                LOG.warn(
                        "Publish listener {} failed; continuing",
                        listener.getClass().getName(),
                        e);
            }
        }
    }
}
