package io.eventsql;

import java.sql.Connection;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import javax.sql.DataSource;
import org.jooq.Configuration;
import org.jooq.DSLContext;

/**
 * Publishes events inside a transaction of the application: the events and the application's own rows are committed
 * together or not at all. Thread-safe; each connection must be used by one thread at a time.
 *
 * <p>An event is first written to a table of the connection's database, the outbox. After the commit, the relay moves it
 * to its stream. Any process that has opened an {@link EventSql} can run the relay, so the event arrives even if this
 * process terminates immediately after its commit. A rollback, also to a savepoint, leaves no event. The events of a
 * prepared transaction arrive after {@code COMMIT PREPARED}.
 *
 * <p>All publishing methods share these guarantees:
 *
 * <ul>
 *   <li>The connection must belong to a database with an outbox: that of a shard, or one given to {@link
 *       EventSqlBuilder#outbox}. It must be in a transaction, at any isolation level. Its state does not change: the
 *       library neither commits nor closes it.
 *   <li>Exactly once: each committed event is appended to its stream once, whatever fails on the way. An event that the
 *       stream's database rejects, for example by a constraint of the application, is refused: it is kept with the reason
 *       ({@link OutboxBacklog#refusedEvents()}) and delays no other event.
 *   <li>One connection: publishing uses only the given one if the stream was used before, or if that connection's database
 *       is a shard that has the stream.
 *   <li>Order: events published by one transaction keep their order per key, and so do the events without a key of one
 *       call. Across transactions, events of a key are ordered by the time they were written, but those of a transaction
 *       that commits later may be appended later. The order matches that of the business operations only if transactions
 *       that publish for the same key exclude each other, for example by locking the business row first.
 *   <li>Invalid input is rejected with {@link InvalidInputException} and an unknown stream with {@link
 *       UnknownStreamException} before anything is written; the transaction remains usable. {@link EventSqlException}
 *       means that the database rejected the statement: the transaction, or its part since the last savepoint, must be
 *       rolled back.
 * </ul>
 *
 * <p>An event reaches its stream a few milliseconds after the commit: after a publish, the relay polls after 1, 2, 4 … ms;
 * after {@link #committed()} it polls immediately, and otherwise every {@link Settings#outboxPollInterval()}.
 */
public interface Outbox {

    /**
     * Publishes one event in the connection's transaction.
     *
     * @param transaction a connection that is not in autocommit mode
     * @throws InvalidInputException if it is in autocommit mode, or the event is invalid; nothing was written
     * @throws UnknownStreamException if the stream does not exist; nothing was written
     */
    void publish(Connection transaction, String stream, Event event);

    /**
     * Publishes events in the connection's transaction, in one statement.
     *
     * @param transaction a connection that is not in autocommit mode
     * @param events at most {@link Settings#maxBatchEvents()} events and {@link Settings#maxBatchBytes()} bytes
     * @throws InvalidInputException if it is in autocommit mode, or an event is invalid; nothing was written
     * @throws UnknownStreamException if the stream does not exist; nothing was written
     */
    void publishAll(Connection transaction, String stream, List<Event> events);

    /**
     * Publishes one event in the connection's transaction if its key has the expected version. The version counts all events of
     * the key published before, also those that still wait in the outbox. The key is locked until the transaction ends: other
     * transactions that publish for it wait, and so do direct publishes until the event has reached the stream.
     *
     * <p>Without an expected version, {@link #publish(Connection, String, Event)} locks the key in the same way, if its stream
     * counts the events of keys and the connection is one of the key's shard. With isolation levels above READ COMMITTED a key that was
     * published for since the transaction began makes the statement fail (SQLSTATE 40001); retry the transaction.
     *
     * @param transaction a connection to the database of the key's shard that is not in autocommit mode
     * @throws VersionConflictException the key has another version; nothing was written, and the transaction remains usable
     * @throws InvalidInputException also if the stream does not count the events of keys, or the key belongs to another
     *     database; nothing was written
     * @throws UnknownStreamException if the stream does not exist; nothing was written
     */
    void publish(Connection transaction, String stream, Event event, ExpectedVersion expected);

    /**
     * Publishes events of one key in the connection's transaction if it has the expected version; each raises it by one. See
     * {@link #publish(Connection, String, Event, ExpectedVersion)}.
     */
    void publishAll(Connection transaction, String stream, List<Event> events, ExpectedVersion expected);

    /**
     * Schedules one event in the connection's transaction: after the commit it waits in the connection's database until it is
     * due by the clock of that database, and is then moved to its stream. See {@link EventPublisher#schedule(String, Event,
     * Instant)}; if the transaction is committed later than the event is due, it is appended at once.
     *
     * @param transaction a connection that is not in autocommit mode
     * @param due rounded up to milliseconds, at most {@link ScheduleId#AHEAD_MAX} ahead; a time in the past means now
     * @return identifies the scheduled event
     * @throws InvalidInputException if it is in autocommit mode, or the event is invalid; nothing was written
     * @throws UnknownStreamException if the stream does not exist; nothing was written
     */
    UUID schedule(Connection transaction, String stream, Event event, Instant due);

    /** Schedules one event in a transaction begun with jOOQ's {@code transaction(trx -> …)}. */
    default UUID schedule(Configuration transaction, String stream, Event event, Instant due) {
        return schedule(requireTransaction(transaction).dsl(), stream, event, due);
    }

    /** Schedules one event in the current transaction of a jOOQ context. */
    default UUID schedule(DSLContext transaction, String stream, Event event, Instant due) {
        return requireTransaction(transaction).connectionResult(connection -> schedule(connection, stream, event, due));
    }

    /** Publishes one event in a transaction begun with jOOQ's {@code transaction(trx -> …)}. */
    default void publish(Configuration transaction, String stream, Event event) {
        publish(requireTransaction(transaction).dsl(), stream, event);
    }

    /** Publishes events in a transaction begun with jOOQ's {@code transaction(trx -> …)}. */
    default void publishAll(Configuration transaction, String stream, List<Event> events) {
        publishAll(requireTransaction(transaction).dsl(), stream, events);
    }

    /** Publishes one event in the current transaction of a jOOQ context. */
    default void publish(DSLContext transaction, String stream, Event event) {
        requireTransaction(transaction).connection(connection -> publish(connection, stream, event));
    }

    /** Publishes events in the current transaction of a jOOQ context. */
    default void publishAll(DSLContext transaction, String stream, List<Event> events) {
        requireTransaction(transaction).connection(connection -> publishAll(connection, stream, events));
    }

    private static <T> T requireTransaction(T transaction) {
        return InvalidInputException.requireGiven("transaction", transaction);
    }

    /**
     * Signals that a transaction which published was committed; the relay then polls immediately. Optional, and harmless
     * at any other time. Useful if transactions run for long after they have published.
     */
    void committed();

    /**
     * Returns the data sources whose transactions can publish: those of the shards and those given to {@link
     * EventSqlBuilder#outbox}.
     */
    List<DataSource> dataSources();

    /**
     * Returns the backlog of each outbox: first those of the shards by number, then the standalone ones.
     *
     * @throws EventSqlException if a database is unavailable
     */
    List<OutboxBacklog> backlogs();

    /**
     * Returns the names of all outboxes, including those of databases that have not been available yet: the names of the
     * shards, then {@code outbox0}, {@code outbox1} … for the standalone ones, in the order in which they were given.
     */
    List<String> names();

    /**
     * Returns the backlog of one outbox, even if the database of another one is unavailable.
     *
     * @param name one of {@link #names()}
     * @throws EventSqlException if the database is unavailable
     * @throws InvalidInputException if there is no such outbox
     */
    OutboxBacklog backlog(String name);
}
