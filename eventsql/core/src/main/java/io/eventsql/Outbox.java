package io.eventsql;

import java.sql.Connection;
import java.util.List;
import javax.sql.DataSource;
import org.jooq.Configuration;
import org.jooq.DSLContext;

/**
 * Publishes events inside a transaction of the application: they and the application's own rows are committed together
 * or not at all. Thread-safe; a connection is used by one thread at a time, as ever.
 *
 * <p>An event is written to a table of the connection's database, the outbox. After the commit, and only then, the relay
 * moves it to its stream: one of all processes that have opened an {@link EventSql}, so it arrives although this process
 * ends right behind its commit. A rollback, also one to a savepoint, leaves nothing. A prepared transaction's events
 * arrive after {@code COMMIT PREPARED}.
 *
 * <p>What holds for all publishing methods:
 *
 * <ul>
 *   <li>The connection must belong to a database with an outbox: that of a shard, or one named by {@link
 *       EventSql.Builder#outbox}. It must be in a transaction; any isolation level will do. It stays as it is: nothing is
 *       committed, set or closed.
 *   <li>Exactly once: each committed event gets into its stream once, whatever fails on the way.
 *   <li>Order: the events of one call, and of calls one after the other in one transaction, keep it, for each key and
 *       among those of a call without keys. Between transactions the order of a key is that in which the events were
 *       written, but a transaction that commits later may come later: it is the order of your business only if the
 *       transactions that publish for a key exclude each other, for instance by first locking the business row.
 *   <li>Wrong input is refused with {@link InvalidInputException} before anything is written, an unknown stream with
 *       {@link UnknownStreamException}; the transaction can go on then. {@link EventSqlException}: the database refused
 *       the statement, and as ever the transaction, or its part behind the last savepoint, must be rolled back.
 * </ul>
 *
 * <p>An event is in its stream a few milliseconds after the commit: the library looks again after 1, 2, 4 … ms when a
 * transaction has published, at once after {@link #committed()}, and else in each {@link Settings#outboxPollInterval()}.
 */
public interface Outbox {

    /**
     * Publishes one event in the connection's transaction.
     *
     * @param transaction a connection that is not in autocommit mode
     * @throws InvalidInputException if it is, or the event is refused; nothing was written
     * @throws UnknownStreamException there is no such stream; nothing was written
     */
    void publish(Connection transaction, String stream, Event event);

    /**
     * Publishes events in the connection's transaction, in one statement.
     *
     * @param transaction a connection that is not in autocommit mode
     * @param events at most {@link Settings#maxBatchEvents()} events and {@link Settings#maxBatchBytes()} bytes
     * @throws InvalidInputException if it is, or an event is refused; nothing was written
     * @throws UnknownStreamException there is no such stream; nothing was written
     */
    void publishAll(Connection transaction, String stream, List<Event> events);

    /** As {@link #publish(Connection, String, Event)}, in the transaction of jOOQ's {@code transaction(trx -> …)}. */
    default void publish(Configuration transaction, String stream, Event event) {
        publish(transaction.dsl(), stream, event);
    }

    /** As {@link #publishAll(Connection, String, List)}, in the transaction of jOOQ's {@code transaction(trx -> …)}. */
    default void publishAll(Configuration transaction, String stream, List<Event> events) {
        publishAll(transaction.dsl(), stream, events);
    }

    /** As {@link #publish(Connection, String, Event)}, in the transaction that this context is in. */
    default void publish(DSLContext transaction, String stream, Event event) {
        transaction.connection(connection -> publish(connection, stream, event));
    }

    /** As {@link #publishAll(Connection, String, List)}, in the transaction that this context is in. */
    default void publishAll(DSLContext transaction, String stream, List<Event> events) {
        transaction.connection(connection -> publishAll(connection, stream, events));
    }

    /**
     * Says that a transaction which published was committed: the relay looks at once. Not necessary, and harmless at any
     * other time; worth it where transactions take long after they have published.
     */
    void committed();

    /**
     * The data sources whose transactions can publish: those of the shards and those named by {@link
     * EventSql.Builder#outbox}, as they were given.
     */
    List<DataSource> dataSources();

    /**
     * What waits, for each database with an outbox: first the shards by their numbers, then the others.
     *
     * @throws EventSqlException if a database does not answer
     */
    List<OutboxBacklog> backlogs();

    /**
     * The databases with an outbox, also those that have not answered yet: the shards by their names, then the others as
     * {@code outbox0}, {@code outbox1} … in the order in which they were given.
     */
    List<String> names();

    /**
     * What waits in one of them, whatever becomes of the others.
     *
     * @param name one of {@link #names()}
     * @throws EventSqlException if the database does not answer
     * @throws InvalidInputException if there is no such outbox
     */
    OutboxBacklog backlog(String name);
}
