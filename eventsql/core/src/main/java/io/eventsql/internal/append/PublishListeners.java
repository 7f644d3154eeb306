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

/** Tells the user's listeners of batches and failed calls: what they throw is logged. Thread-safe. */
public final class PublishListeners {
    private static final Logger LOG = LoggerFactory.getLogger(PublishListeners.class);

    private final List<PublishListener> listeners;

    public PublishListeners(List<PublishListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

    /** For who has no listeners. */
    public static PublishListeners toNobody() {
        return new PublishListeners(List.of());
    }

    void appended(int shard, Batch batch, List<PartitionGroup> groups, long nanos) {
        if (listeners.isEmpty()) {
            return;
        }
        Map<String, Integer> byStream = new HashMap<>();
        int events = 0;
        for (PartitionGroup group : groups) {
            byStream.merge(group.stream.name(), group.size(), Integer::sum);
            events += group.size();
        }
        PublishListener.Appended appended = new PublishListener.Appended(
                shard, batch.sentCalls(), events, batch.sentBytes(), nanos, Map.copyOf(byStream));
        tell(listener -> listener.appended(appended));
    }

    void appendFailed(int shard, Throwable error) {
        tell(listener -> listener.appendFailed(shard, error));
    }

    /** The same outcome, of whose failure the listeners are told as well. */
    PublishCall.Outcome listening(PublishCall.Outcome outcome, String stream, int events) {
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
                tell(listener -> listener.callFailed(stream, events, failure));
            }
        };
    }

    private void tell(Consumer<PublishListener> news) {
        for (PublishListener listener : listeners) {
            try {
                news.accept(listener);
            } catch (RuntimeException | Error e) { // the appending threads must go on
                LOG.warn("A listener failed", e);
            }
        }
    }
}
