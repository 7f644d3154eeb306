package io.eventsql.spring.test;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.EventPosition;
import io.eventsql.PartitionState;
import io.eventsql.StoredEvent;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The last failure of a handler in each partition: the state of a consumer has none while an event is retried. Thread-safe. */
final class HandlerFailures implements ConsumerListener {
    private final Map<ConsumerPartition, Failure> last = new ConcurrentHashMap<>();

    /**
     * A failed call of a handler.
     *
     * @param attempt the number of failed attempts of this event, from 1
     */
    record Failure(EventPosition position, int attempt, Throwable error) {}

    @Override
    public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
        EventPosition position = event.position();
        last.put(
                new ConsumerPartition(position.stream(), consumer, position.shard(), position.partition()),
                new Failure(position, attempt, error));
    }

    /** Returns the last failure of an event that the consumer has not handled since; {@code null} if there is none. */
    @Nullable
    Failure find(String stream, String consumer, List<PartitionState> states) {
        for (PartitionState state : states) {
            Failure failure = last.get(new ConsumerPartition(stream, consumer, state.shard(), state.partition()));
            if (failure != null && failure.position().offset() >= state.nextOffset()) {
                return failure;
            }
        }
        return null;
    }
}
