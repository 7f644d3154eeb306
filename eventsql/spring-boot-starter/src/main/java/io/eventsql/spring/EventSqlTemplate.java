package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.Outbox;
import io.eventsql.UnknownStreamException;
import io.eventsql.VersionConflictException;
import io.eventsql.spring.CurrentTransaction.Found;
import java.sql.Connection;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/**
 * Publishes objects as events. Thread-safe. Spring Boot configures one as a bean; without Boot, {@link #of} makes one.
 *
 * <p>Inside a transaction of Spring the events are part of it: committed with it or not at all, and then moved to their
 * stream within milliseconds ({@link Outbox}). Outside of any transaction they are committed when the method returns
 * ({@link EventPublisher}). The template joins transactions of JDBC and JPA transaction managers whose {@link
 * javax.sql.DataSource} is a shard's or has an outbox. In any other transaction, in a read-only one, and while one is
 * being committed, such as in JPA's flush at the commit, publishing throws {@link TransactionNotJoinableException},
 * unless {@link UnjoinableTransaction} says otherwise.
 *
 * <p>The name of the payload's class is stored as header {@link EventTypes#TYPE_HEADER}; see {@link EventType}.
 *
 * <p>All methods throw {@link EventSerializationException} if a payload cannot be serialized, {@link
 * InvalidInputException} if an event is invalid, and {@link UnknownStreamException} if the stream does not exist. Nothing
 * was written then, and the transaction can continue.
 */
public final class EventSqlTemplate {
    private final EventPublisher publisher;
    private final Outbox outbox;
    private final Options options;
    private final CurrentTransaction transaction;
    private final boolean joins;

    private record Options(
            EventSerializer serializer,
            List<OutgoingEventCustomizer> customizers,
            EventTypes types,
            @Nullable Consumer<String> unknownStreamHandler,
            UnaryOperator<RuntimeException> exceptionTranslator,
            UnjoinableTransaction unjoinableTransaction,
            EventSqlObservations observations) {}

    private EventSqlTemplate(
            EventPublisher publisher, Outbox outbox, Options options, CurrentTransaction transaction, boolean joins) {
        this.publisher = publisher;
        this.outbox = outbox;
        this.options = options;
        this.transaction = transaction;
        this.joins = joins;
    }

    /**
     * Returns a template with the default options, for Spring without Boot.
     *
     * <p>Register a {@link TransactionTracker} as a bean next to it, so that events published by callbacks after a
     * commit are not mistaken for a part of the transaction.
     */
    public static EventSqlTemplate of(EventSql eventSql) {
        return builder(eventSql).build();
    }

    /** Returns a builder of a template. */
    public static Builder builder(EventSql eventSql) {
        return new Builder(eventSql);
    }

    /**
     * Returns a view of this template that publishes at once, whatever the current transaction: a rollback does not undo
     * it.
     *
     * <p>Inside a transaction the calling thread keeps its connection while it waits for an append, which needs another
     * one: the pool needs more connections than threads that do this at the same time.
     */
    public EventSqlTemplate outsideTransaction() {
        return joins ? new EventSqlTemplate(publisher, outbox, options, transaction, false) : this;
    }

    /** Publishes an event without a key; see {@link #publish(String, OutgoingEvent)}. */
    public Optional<EventPosition> publish(String stream, Object payload) {
        return publish(stream, payload instanceof OutgoingEvent event ? event : OutgoingEvent.of(payload));
    }

    /** Publishes an event; events with the same key keep their order. See {@link #publish(String, OutgoingEvent)}. */
    public Optional<EventPosition> publish(String stream, @Nullable String key, Object payload) {
        return publish(stream, OutgoingEvent.of(key, payload));
    }

    /**
     * Publishes an event.
     *
     * @return the event's position; empty inside a transaction, because the position is assigned after the commit
     */
    public Optional<EventPosition> publish(String stream, OutgoingEvent event) {
        return publish(stream, event, ExpectedVersion.ANY);
    }

    /**
     * Publishes an event if its key has the expected version; for streams that count the events of keys.
     *
     * @return the event's position; empty inside a transaction, because the position is assigned after the commit
     * @throws VersionConflictException the key has another version; nothing was written
     */
    public Optional<EventPosition> publish(String stream, OutgoingEvent event, ExpectedVersion expected) {
        List<Event> serialized = List.of(serialize(stream, event));
        if (transactionToJoin(stream) instanceof Found.Joinable joinable) {
            options.observations()
                    .publish(
                            stream,
                            serialized,
                            traced -> write(stream, joinable, c -> write(c, stream, traced.getFirst(), expected)));
            return Optional.empty();
        }
        return Optional.of(options.observations()
                .publish(
                        stream,
                        serialized,
                        traced -> attempt(stream, () -> publisher.publish(stream, traced.getFirst(), expected))));
    }

    private void write(Connection connection, String stream, Event event, ExpectedVersion expected) {
        if (expected.isAny()) {
            outbox.publish(connection, stream, event);
        } else {
            outbox.publish(connection, stream, event, expected);
        }
    }

    /**
     * Publishes events; events with the same key keep their order. Outside of a transaction the events of one shard are
     * committed together or not at all, see {@link EventPublisher#publishAll}.
     *
     * @return the events' positions; an empty list inside a transaction
     */
    public List<EventPosition> publishAll(String stream, List<OutgoingEvent> events) {
        List<Event> serialized = serializeAll(stream, events);
        if (transactionToJoin(stream) instanceof Found.Joinable joinable) {
            options.observations()
                    .publish(
                            stream,
                            serialized,
                            traced -> write(stream, joinable, c -> outbox.publishAll(c, stream, traced)));
            return List.of();
        }
        return options.observations()
                .publish(stream, serialized, traced -> attempt(stream, () -> publisher.publishAll(stream, traced)));
    }

    /** Schedules an event; see {@link #schedule(String, OutgoingEvent, Instant)}. */
    public UUID schedule(String stream, @Nullable String key, Object payload, Instant due) {
        return schedule(stream, OutgoingEvent.of(key, payload), due);
    }

    /**
     * Schedules an event: it is appended to its stream when it is due. Inside a transaction it is scheduled by it or not at all
     * ({@link Outbox#schedule}), outside of any it is scheduled when the method returns ({@link EventPublisher#schedule}).
     *
     * @param due rounded up to milliseconds; a time in the past means now
     * @return identifies the event, for {@link EventSql#cancelScheduled}
     */
    public UUID schedule(String stream, OutgoingEvent event, Instant due) {
        List<Event> serialized = List.of(serialize(stream, event));
        if (transactionToJoin(stream) instanceof Found.Joinable joinable) {
            AtomicReference<@Nullable UUID> id = new AtomicReference<>();
            options.observations()
                    .publish(
                            stream,
                            serialized,
                            traced -> write(
                                    stream, joinable, c -> id.set(outbox.schedule(c, stream, traced.getFirst(), due))));
            return Objects.requireNonNull(id.get());
        }
        return options.observations()
                .publish(
                        stream,
                        serialized,
                        traced -> attempt(stream, () -> publisher.schedule(stream, traced.getFirst(), due)));
    }

    /** Publishes an event without waiting; see {@link #publishAsync(String, OutgoingEvent)}. */
    public CompletableFuture<EventPosition> publishAsync(String stream, @Nullable String key, Object payload) {
        return publishAsync(stream, OutgoingEvent.of(key, payload));
    }

    /**
     * Publishes an event at once, without waiting; see {@link EventPublisher#publishAsync}.
     *
     * @throws TransactionNotJoinableException inside a transaction, unless this is the view {@link
     *     #outsideTransaction()}: it would be unclear whether the event is part of the transaction
     */
    public CompletableFuture<EventPosition> publishAsync(String stream, OutgoingEvent event) {
        return publishAsync(
                stream, List.of(serialize(stream, event)), traced -> publisher.publishAsync(stream, traced.getFirst()));
    }

    /**
     * Publishes events at once, without waiting; see {@link EventPublisher#publishAllAsync}.
     *
     * @throws TransactionNotJoinableException as {@link #publishAsync(String, OutgoingEvent)}
     */
    public CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<OutgoingEvent> events) {
        return publishAsync(stream, serializeAll(stream, events), traced -> publisher.publishAllAsync(stream, traced));
    }

    private <T> CompletableFuture<T> publishAsync(
            String stream, List<Event> serialized, Function<List<Event>, CompletableFuture<T>> publish) {
        requireNoTransaction(stream);
        return options.observations()
                .publishAsync(stream, serialized, traced -> attempt(stream, () -> publish.apply(traced)));
    }

    /** Returns the transaction to join, if any; throws where there is one that cannot be joined. */
    private Found transactionToJoin(String stream) {
        Found found = joins ? transaction.find() : new Found.None();
        if (found instanceof Found.NotJoinable not && options.unjoinableTransaction() == UnjoinableTransaction.FAIL) {
            throw new TransactionNotJoinableException(
                    "Nothing was published to " + stream + ": the current transaction " + not.reason());
        }
        return found;
    }

    private void requireNoTransaction(String stream) {
        if (joins && !(transaction.find() instanceof Found.None)) {
            throw new TransactionNotJoinableException("Nothing was published to " + stream
                    + ": publishAsync is not part of the current transaction. Call publish, which joins it, or"
                    + " template.outsideTransaction().publishAsync");
        }
    }

    /**
     * Publishes an event without a value, which says that the key is deleted ({@link Event#tombstone}). With headers: {@link
     * OutgoingEvent#tombstone}.
     *
     * @return the event's position; empty inside a transaction, because the position is assigned after the commit
     */
    public Optional<EventPosition> publishTombstone(String stream, String key) {
        return publish(stream, OutgoingEvent.tombstone(key));
    }

    private List<Event> serializeAll(String stream, List<OutgoingEvent> events) {
        return events.stream().map(event -> serialize(stream, event)).toList();
    }

    private Event serialize(String stream, OutgoingEvent event) {
        boolean isTombstone = event.payload() == Tombstone.INSTANCE;
        Event serialized = isTombstone
                ? Event.tombstone(requireKey(event)).withHeaders(event.headers())
                : options.serializer().serialize(stream, event);
        for (OutgoingEventCustomizer customizer : options.customizers()) {
            serialized = customizer.customize(stream, event.payload(), serialized);
            if (serialized.isTombstone() != isTombstone) {
                throw new EventSerializationException("Nothing was published to " + stream + ": "
                        + customizer.getClass().getName() + " has "
                        + (isTombstone ? "given the tombstone a value" : "replaced the event by a tombstone")
                        + "; copy an event with Event.withHeaders, which keeps its value");
            }
        }
        return isTombstone ? serialized : withType(event.payload().getClass(), serialized);
    }

    private static String requireKey(OutgoingEvent tombstone) {
        String key = tombstone.key();
        if (key == null) {
            throw new InvalidInputException("event.key", "must not be null, because the event is a tombstone");
        }
        return key;
    }

    /** Adds the name of the payload's class, unless the event has one, such as the type of a CloudEvent. */
    private Event withType(Class<?> payload, Event event) {
        @Nullable String name = options.types().name(payload);
        if (name == null || event.headers().containsKey(EventTypes.TYPE_HEADER)) {
            return event;
        }
        Map<String, String> headers = new LinkedHashMap<>(event.headers());
        if (EventTypes.storedName(headers) == null) {
            headers.put(EventTypes.TYPE_HEADER, name);
        }
        int version = EventTypes.version(ClassUtils.getUserClass(payload));
        if (version > 1) {
            headers.putIfAbsent(EventTypes.VERSION_HEADER, Integer.toString(version));
        }
        return headers.size() == event.headers().size() ? event : event.withHeaders(headers);
    }

    private Found.Joinable write(String stream, Found.Joinable joinable, Consumer<Connection> writing) {
        return attempt(stream, () -> {
            transaction.write(joinable, writing);
            return joinable;
        });
    }

    /** Publishes, and once more if the stream was unknown and has been created: the first attempt wrote nothing. */
    private <T> T attempt(String stream, Supplier<T> publish) {
        try {
            try {
                return publish.get();
            } catch (UnknownStreamException e) {
                if (options.unknownStreamHandler() == null) {
                    throw e;
                }
                options.unknownStreamHandler().accept(stream);
                return publish.get();
            }
        } catch (RuntimeException e) {
            throw options.exceptionTranslator().apply(e);
        }
    }

    /** Builds a template; not thread-safe. */
    public static final class Builder {
        private final EventSql eventSql;
        private @Nullable EventSerializer serializer;
        private List<OutgoingEventCustomizer> customizers = List.of();
        private EventTypes types = new EventTypes();
        private @Nullable Consumer<String> unknownStreamHandler;
        private UnaryOperator<RuntimeException> exceptionTranslator = UnaryOperator.identity();
        private UnjoinableTransaction unjoinableTransaction = UnjoinableTransaction.FAIL;
        private EventSqlObservations observations = EventSqlObservations.none();

        private Builder(EventSql eventSql) {
            this.eventSql = Objects.requireNonNull(eventSql, "eventSql");
        }

        /** Serializes payloads; default: {@link JacksonEventSerializer}, without Jackson {@link PlainEventSerializer}. */
        public Builder serializer(EventSerializer value) {
            serializer = Objects.requireNonNull(value, "serializer");
            return this;
        }

        /** Customizes each event after its serialization, in this order; default: none. */
        public Builder customizers(List<OutgoingEventCustomizer> values) {
            customizers = List.copyOf(values);
            return this;
        }

        /**
         * The names that are stored with events, {@link EventTypes#TYPE_HEADER}; default: an instance that gets every class
         * published.
         */
        public Builder eventTypes(EventTypes value) {
            types = Objects.requireNonNull(value, "eventTypes");
            return this;
        }

        /**
         * Called with the name of a stream that does not exist, before the publish call is repeated: creates the stream or
         * throws. Default: the call fails with {@link UnknownStreamException}.
         */
        public Builder unknownStreamHandler(Consumer<String> value) {
            unknownStreamHandler = Objects.requireNonNull(value, "unknownStreamHandler");
            return this;
        }

        /** Translates exceptions that a call throws, such as their messages; default: none. */
        public Builder exceptionTranslator(UnaryOperator<RuntimeException> value) {
            exceptionTranslator = Objects.requireNonNull(value, "exceptionTranslator");
            return this;
        }

        /** What to do inside a transaction that cannot be joined; default {@link UnjoinableTransaction#FAIL}. */
        public Builder unjoinableTransaction(UnjoinableTransaction value) {
            unjoinableTransaction = Objects.requireNonNull(value, "unjoinableTransaction");
            return this;
        }

        /** Observes each call, and adds the trace to the events' headers; default: no observation. */
        public Builder observations(EventSqlObservations value) {
            observations = Objects.requireNonNull(value, "observations");
            return this;
        }

        /** Returns the template. */
        public EventSqlTemplate build() {
            Options options = new Options(
                    serializer == null ? defaultSerializer() : serializer,
                    customizers,
                    types,
                    unknownStreamHandler,
                    exceptionTranslator,
                    unjoinableTransaction,
                    observations);
            Outbox outbox = eventSql.outbox();
            return new EventSqlTemplate(eventSql.publisher(), outbox, options, new CurrentTransaction(outbox), true);
        }

        private static EventSerializer defaultSerializer() {
            return ClassUtils.isPresent(
                            "tools.jackson.databind.json.JsonMapper", EventSqlTemplate.class.getClassLoader())
                    ? JacksonEventSerializer.withDefaults()
                    : new PlainEventSerializer();
        }
    }
}
