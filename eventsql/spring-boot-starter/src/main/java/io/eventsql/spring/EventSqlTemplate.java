package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Outbox;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.CurrentTransaction.Found;
import io.eventsql.spring.observation.EventSqlObservations;
import java.sql.Connection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Publishes objects as events. Thread-safe.
 *
 * <p>In a transaction of Spring the events are part of it: committed with it or not at all, and then moved to their stream
 * within milliseconds ({@link Outbox}). Outside of any they are committed when the method returns ({@link EventPublisher}).
 * A transaction is joined when it is one of a shard's {@link javax.sql.DataSource} or of one that is named as an outbox,
 * by JDBC's or JPA's transaction manager. In any other, and in a read-only one, publishing throws {@link
 * TransactionNotJoinableException} ({@link UnjoinableTransaction}).
 *
 * <p>All methods throw {@link EventSerializationException} if a payload has no form, {@link
 * io.eventsql.InvalidInputException} if an event is refused, and {@link UnknownStreamException} if there is no such
 * stream and it is not to be created: nothing was written then, and the transaction can go on.
 */
public final class EventSqlTemplate {
    private final EventPublisher publisher;
    private final Outbox outbox;
    private final Parts parts;
    private final CurrentTransaction transaction;
    private final boolean joins;

    /**
     * What a template works with.
     *
     * @param serializer makes values of payloads
     * @param customizers change each event, in this order
     * @param streams creates the streams that are missing
     * @param transactions knows the transactions of managers
     * @param unjoinable what to do in a transaction that cannot be joined
     * @param observations observes each call, and adds the trace to the headers
     */
    public record Parts(
            EventSerializer serializer,
            List<OutgoingEventCustomizer> customizers,
            StreamCreator streams,
            OpenTransactions transactions,
            UnjoinableTransaction unjoinable,
            EventSqlObservations observations) {
        public Parts {
            customizers = List.copyOf(customizers);
        }
    }

    public EventSqlTemplate(EventSql eventSql, Parts parts) {
        this.publisher = eventSql.publisher();
        this.outbox = eventSql.outbox();
        this.parts = parts;
        this.transaction = new CurrentTransaction(outbox, parts.transactions());
        this.joins = true;
    }

    private EventSqlTemplate(EventSqlTemplate other, boolean joins) {
        this.publisher = other.publisher;
        this.outbox = other.outbox;
        this.parts = other.parts;
        this.transaction = other.transaction;
        this.joins = joins;
    }

    /**
     * The same template, publishing at once whatever the transaction: its rollback changes nothing.
     *
     * <p>In a transaction the calling thread holds one connection of the pool while it waits for an append, which needs
     * another one: the pool must have more connections than threads do this at the same time.
     */
    public EventSqlTemplate outsideTransaction() {
        return joins ? new EventSqlTemplate(this, false) : this;
    }

    /** Publishes an event without a key. */
    public void publish(String stream, Object payload) {
        publish(stream, payload instanceof OutgoingEvent event ? event : OutgoingEvent.of(payload));
    }

    /** Publishes an event; those of one key keep their order. */
    public void publish(String stream, @Nullable String key, Object payload) {
        publish(stream, OutgoingEvent.of(key, payload));
    }

    /** Publishes an event. */
    public void publish(String stream, OutgoingEvent event) {
        Event serialized = serialize(stream, event);
        Found found = joined(stream);
        parts.observations().publish(stream, List.of(serialized), traced -> {
            Event published = traced.getFirst();
            return found instanceof Found.Joinable joinable
                    ? write(stream, joinable, connection -> outbox.publish(connection, stream, published))
                    : creating(stream, () -> publisher.publish(stream, published));
        });
    }

    /**
     * Publishes events, in their order for each key. Outside of a transaction those that go to the same shard are
     * committed together or not at all, see {@link EventPublisher#publishAll}.
     */
    public void publishAll(String stream, List<OutgoingEvent> events) {
        List<Event> serialized = serializeAll(stream, events);
        Found found = joined(stream);
        parts.observations()
                .publish(
                        stream,
                        serialized,
                        traced -> found instanceof Found.Joinable joinable
                                ? write(stream, joinable, connection -> outbox.publishAll(connection, stream, traced))
                                : creating(stream, () -> publisher.publishAll(stream, traced)));
    }

    /** As {@link #publishAsync(String, OutgoingEvent)}. */
    public CompletableFuture<EventPosition> publishAsync(String stream, @Nullable String key, Object payload) {
        return publishAsync(stream, OutgoingEvent.of(key, payload));
    }

    /**
     * Publishes an event at once, without waiting; see {@link EventPublisher#publishAsync}.
     *
     * @throws TransactionNotJoinableException inside a transaction, unless this is the view {@link
     *     #outsideTransaction()}: nobody could tell whether the event is part of it
     */
    public CompletableFuture<EventPosition> publishAsync(String stream, OutgoingEvent event) {
        Event serialized = serialize(stream, event);
        refuseInTransaction(stream);
        return parts.observations()
                .publishAsync(
                        stream,
                        List.of(serialized),
                        traced -> creating(stream, () -> publisher.publishAsync(stream, traced.getFirst())));
    }

    /** Publishes events at once, without waiting; see {@link #publishAsync} and {@link EventPublisher#publishAllAsync}. */
    public CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<OutgoingEvent> events) {
        List<Event> serialized = serializeAll(stream, events);
        refuseInTransaction(stream);
        return parts.observations()
                .publishAsync(
                        stream,
                        serialized,
                        traced -> creating(stream, () -> publisher.publishAllAsync(stream, traced)));
    }

    /** The transaction to join, if any; throws where there is one that cannot be joined. */
    private Found joined(String stream) {
        Found found = joins ? transaction.find() : new Found.None();
        if (found instanceof Found.NotJoinable not && parts.unjoinable() == UnjoinableTransaction.FAIL) {
            throw new TransactionNotJoinableException(
                    "Nothing was published to " + stream + ": the current transaction " + not.reason());
        }
        return found;
    }

    private void refuseInTransaction(String stream) {
        if (joins && !(transaction.find() instanceof Found.None)) {
            throw new TransactionNotJoinableException("Nothing was published to " + stream
                    + ": publishAsync in a transaction would not be part of it. Use"
                    + " publish, which joins it, or template.outsideTransaction().publishAsync");
        }
    }

    private List<Event> serializeAll(String stream, List<OutgoingEvent> events) {
        return events.stream().map(event -> serialize(stream, event)).toList();
    }

    private Event serialize(String stream, OutgoingEvent event) {
        Event serialized = parts.serializer().serialize(stream, event);
        for (OutgoingEventCustomizer customizer : parts.customizers()) {
            serialized = customizer.customize(stream, event.payload(), serialized);
        }
        return serialized;
    }

    private Object write(String stream, Found.Joinable joinable, Consumer<Connection> writing) {
        return creating(stream, () -> {
            transaction.write(joinable, writing);
            return joinable;
        });
    }

    /** Publishes again when the stream had to be created: nothing was written the first time. */
    private <T> T creating(String stream, Supplier<T> publishing) {
        try {
            return publishing.get();
        } catch (UnknownStreamException e) {
            parts.streams().require(stream);
            return publishing.get();
        }
    }
}
