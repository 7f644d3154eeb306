package io.eventsql.spring.test;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.OutboxBacklog;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.StoredEvent;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventTypes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Waits for listeners and reads streams. A bean of every application with EventSQL and this module on its class path.
 * Thread-safe.
 */
public final class EventSqlTestSupport {
    /** The timeout of methods without a parameter for it. */
    public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(20);

    private static final long POLL_INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(5);

    private final EventSql eventSql;
    private final EventSerializer serializer;
    private final EventTypes types;
    private final HandlerFailures failures;

    public EventSqlTestSupport(EventSql eventSql, EventSerializer serializer, EventTypes types) {
        this(eventSql, serializer, types, new HandlerFailures());
    }

    /** @param failures a callback of the given {@code EventSql} */
    EventSqlTestSupport(EventSql eventSql, EventSerializer serializer, EventTypes types, HandlerFailures failures) {
        this.eventSql = eventSql;
        this.serializer = serializer;
        this.types = types;
        this.failures = failures;
    }

    /**
     * What is awaited.
     *
     * @param cause why it has not happened yet; {@code null} if that is unknown
     */
    private record Missing(String text, @Nullable Throwable cause) {
        Missing(String text) {
            this(text, null);
        }
    }

    /** As {@link #awaitHandled(String, String, Duration)}, for at most 20 seconds. */
    public void awaitHandled(String stream, String consumer) {
        awaitHandled(stream, consumer, DEFAULT_TIMEOUT);
    }

    /**
     * Waits until the consumer has handled all committed events, including those in outboxes.
     *
     * @throws AssertionError at once if a partition is stopped or an event was parked or dead-lettered, with its error; at
     *     once if an outbox has refused an event of any stream, with the outbox's name; after the timeout if events are
     *     left, with their number, and with the last failure of the handler in this process if an event is being retried,
     *     which has no end by default
     */
    public void awaitHandled(String stream, String consumer, Duration timeout) {
        await(timeout, () -> {
            Map<String, OutboxBacklog> outboxes = outboxes();
            Missing waiting = relaying(outboxes);
            if (waiting != null) {
                return waiting;
            }
            requireNoneRefused(outboxes);
            List<PartitionState> states = states(stream, consumer);
            requireNoFailure(stream, consumer, states);
            long lag = states.stream().mapToLong(PartitionState::lag).sum();
            if (states.isEmpty()) {
                return new Missing("consumer " + consumer + " of stream " + stream + " was never started");
            }
            return lag == 0 ? null : unhandled(stream, consumer, lag, states);
        });
    }

    private Missing unhandled(String stream, String consumer, long lag, List<PartitionState> states) {
        String text = "consumer " + consumer + " has not handled " + lag + " events of stream " + stream;
        HandlerFailures.Failure failure = failures.find(stream, consumer, states);
        if (failure == null) {
            return new Missing(text);
        }
        return new Missing(
                text + "; attempt " + failure.attempt() + " to handle the event at " + failure.position() + " failed: "
                        + failure.error(),
                failure.error());
    }

    /**
     * Waits, for at most 20 seconds, until the consumer has parked or dead-lettered at least this number of events.
     *
     * @param events at most {@value ConsumerSpec#PAGE_EVENTS_MAX}
     * @return the parked events and dead letters, by shard, partition and offset
     * @throws AssertionError if there are fewer after the timeout
     */
    public List<ParkedEvent> awaitParked(String stream, String consumer, int events) {
        List<ParkedEvent> found = new ArrayList<>();
        await(DEFAULT_TIMEOUT, () -> {
            found.clear();
            found.addAll(parkedEvents(stream, consumer));
            return found.size() >= events
                    ? null
                    : new Missing("consumer " + consumer + " of stream " + stream + " has parked " + found.size()
                            + " events instead of " + events);
        });
        return found;
    }

    /** Returns all events of a stream in the order in which they were stored, after waiting for those in outboxes. */
    public List<StoredEvent> read(String stream) {
        await(DEFAULT_TIMEOUT, () -> relaying(outboxes()));
        List<StoredEvent> events = new ArrayList<>();
        // Also in partitions that were added since the stream was created.
        eventSql.retentionPlan(stream).stream()
                .map(segment -> new EventPosition(stream, segment.shard(), segment.partition(), 0))
                .distinct()
                .forEach(partition -> readPartition(partition, events));
        events.sort(Comparator.comparing(StoredEvent::publishedAt)
                .thenComparingInt(StoredEvent::shard)
                .thenComparingInt(StoredEvent::partition)
                .thenComparingLong(StoredEvent::offset));
        return events;
    }

    /**
     * Returns the payloads of all events of a stream, see {@link #read(String)}.
     *
     * @throws io.eventsql.spring.EventSerializationException if one has another type or cannot be deserialized
     */
    public <T> List<T> read(String stream, Class<T> type) {
        return read(stream).stream()
                .map(event -> type.cast(serializer.deserialize(event, types.resolve(event, type, false))))
                .toList();
    }

    private void readPartition(EventPosition from, List<StoredEvent> into) {
        List<StoredEvent> page = page(from);
        while (!page.isEmpty()) {
            into.addAll(page);
            page = page(at(from, page.getLast().offset() + 1));
        }
    }

    private List<StoredEvent> page(EventPosition from) {
        try {
            return eventSql.read(from, ConsumerSpec.PAGE_EVENTS_MAX);
        } catch (OffsetOutOfRangeException e) { // retention removed old events
            return eventSql.read(at(from, e.logStart()), ConsumerSpec.PAGE_EVENTS_MAX);
        }
    }

    private static EventPosition at(EventPosition partition, long offset) {
        return new EventPosition(partition.stream(), partition.shard(), partition.partition(), offset);
    }

    private Map<String, OutboxBacklog> outboxes() {
        Map<String, OutboxBacklog> byName = new LinkedHashMap<>();
        eventSql.outbox()
                .names()
                .forEach(name -> byName.put(name, eventSql.outbox().backlog(name)));
        return byName;
    }

    private static @Nullable Missing relaying(Map<String, OutboxBacklog> outboxes) {
        int waiting = outboxes.values().stream().mapToInt(OutboxBacklog::events).sum();
        return waiting == 0 ? null : new Missing(waiting + " events are in the outbox");
    }

    private static void requireNoneRefused(Map<String, OutboxBacklog> outboxes) {
        outboxes.forEach((name, backlog) -> {
            if (backlog.refusedEvents() > 0) {
                throw new AssertionError("Outbox " + name + " has refused " + backlog.refusedEvents()
                        + " events; the table outbox_refused of its database has them with the reasons");
            }
        });
    }

    private List<PartitionState> states(String stream, String consumer) {
        try {
            return eventSql.consumer(stream, consumer).state();
        } catch (UnknownStreamException e) { // its listener will create it
            return List.of();
        }
    }

    private List<ParkedEvent> parkedEvents(String stream, String consumer) {
        try {
            return eventSql.consumer(stream, consumer).parkedEvents(ConsumerSpec.PAGE_EVENTS_MAX);
        } catch (UnknownStreamException e) {
            return List.of();
        }
    }

    private void requireNoFailure(String stream, String consumer, List<PartitionState> states) {
        for (PartitionState state : states) {
            if (state.status() == PartitionState.Status.STOPPED) {
                throw new AssertionError("Consumer " + consumer + " of stream " + stream + " is stopped in partition "
                        + state.partition() + " on shard " + state.shard() + ": " + state.error());
            }
        }
        if (states.stream().anyMatch(state -> state.parkedEvents() > 0)) {
            parkedEvents(stream, consumer).stream().findFirst().ifPresent(event -> {
                throw new AssertionError("Consumer " + consumer + " could not handle the event at "
                        + event.event().position() + ": " + event.error());
            });
        }
    }

    /** Polls until nothing is missing, also while a database is unavailable. */
    private static void await(Duration timeout, Supplier<@Nullable Missing> missing) {
        long deadline = System.nanoTime() + timeout.toNanos();
        while (true) {
            Missing left;
            try {
                left = missing.get();
            } catch (EventSqlException e) {
                left = new Missing(String.valueOf(e.getMessage()), e);
            }
            if (left == null) {
                return;
            }
            if (System.nanoTime() - deadline >= 0) {
                throw new AssertionError("After " + timeout.toMillis() + " ms " + left.text(), left.cause());
            }
            LockSupport.parkNanos(POLL_INTERVAL_NS);
        }
    }
}
