package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The outbox contract, and how publishing depends on the transaction, which differs only by whether the outbox is that of a shard. That
 * an event never arrives is shown by a later one: the relay takes all visible events, so an event that did not arrive before the later
 * one never will.
 */
abstract class OutboxTransactionsContract extends OutboxContract {
    private static final String LAST = "the last";

    /** Publishes one more event of the same key and waits until exactly the expected ones and this one are stored. */
    private void assertStoredBeforeTheLast(String... expected) throws SQLException {
        publishCommitted(LAST);
        String[] all = Arrays.copyOf(expected, expected.length + 1);
        all[expected.length] = LAST;
        awaitStored(all);
    }

    @Test
    void publish_rolledBack_isNeverDelivered() throws SQLException {
        try (Connection transaction = begin()) {
            Sql.query(transaction, "INSERT INTO bill VALUES ('a') RETURNING name");
            outbox.publish(transaction, stream, Event.ofText("key", "rolled back"));
            outbox.committed(); // untrue, but harmless
            transaction.rollback();
        }
        assertStoredBeforeTheLast();
        assertThat(Sql.query(database, "SELECT name FROM bill")).isEmpty();
    }

    @Test
    void publish_connectionClosedWithoutCommit_isNeverDelivered() throws SQLException {
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("key", "forgotten"));
        }
        assertStoredBeforeTheLast();
    }

    @Test
    void publish_rolledBackToSavepoint_deliversOnlyRemainingEvents() throws SQLException {
        try (Connection transaction = begin()) {
            outbox.publish(transaction, stream, Event.ofText("key", "before"));
            Savepoint savepoint = transaction.setSavepoint();
            outbox.publish(transaction, stream, Event.ofText("key", "undone"));
            outbox.publishAll(
                    transaction, stream, List.of(Event.ofText("key", "undone too"), Event.ofText("undone 3")));
            transaction.rollback(savepoint);
            outbox.publish(transaction, stream, Event.ofText("key", "after"));
            transaction.commit();
        }
        awaitStored("before", "after");
        assertStoredBeforeTheLast("before", "after");
    }

    @ParameterizedTest
    @ValueSource(ints = {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE})
    void publish_higherIsolationLevel_isDelivered(int level) throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setTransactionIsolation(level);
            transaction.setAutoCommit(false);
            outbox.publish(transaction, stream, Event.ofText("key", "one"));
            outbox.publishAll(transaction, stream, List.of(Event.ofText("key", "two"), Event.ofText("key", "three")));
            assertThat(transaction.getTransactionIsolation()).isEqualTo(level);
            assertThat(transaction.getAutoCommit()).isFalse();
            transaction.commit();
        }
        awaitStored("one", "two", "three");
    }

    @Test
    void publish_withJooq_followsOuterAndNestedTransactions() {
        DSLContext dsl = DSL.using(database, SQLDialect.POSTGRES);
        dsl.transaction(trx -> {
            outbox.publish(trx, stream, Event.ofText("key", "one"));
            trx.dsl().execute("INSERT INTO bill VALUES ('one')");
            outbox.publishAll(trx.dsl(), stream, List.of(Event.ofText("key", "two")));
            outbox.publishAll(trx, stream, List.of(Event.ofText("key", "three")));
            assertThatExceptionOfType(IllegalStateException.class)
                    .isThrownBy(() -> trx.dsl().transaction(nested -> {
                        outbox.publish(nested.dsl(), stream, Event.ofText("key", "undone"));
                        throw new IllegalStateException("rolls back to the savepoint");
                    }));
        });
        assertThatExceptionOfType(IllegalStateException.class)
                .isThrownBy(() -> dsl.transaction(trx -> {
                    outbox.publish(trx, stream, Event.ofText("key", "undone"));
                    throw new IllegalStateException("rolls back");
                }));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> outbox.publish(dsl, stream, Event.ofText("key", "outside of a transaction")))
                .withMessageStartingWith("transaction ");
        awaitStored("one", "two", "three");
    }

    @Test
    void publish_inAutocommitMode_isRejectedNamingIt() throws SQLException {
        try (Connection connection = database.getConnection()) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publish(connection, stream, Event.ofText("key", "x")))
                    .withMessageContaining("autocommit")
                    .satisfies(e -> assertThat(e.field()).isEqualTo("transaction"));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publishAll(connection, stream, List.of()));
        }
        assertStoredBeforeTheLast();
    }

    @Test
    void publish_invalidInput_isRejectedAndTransactionContinues() throws SQLException {
        Map<String, Event> wrong = Map.of(
                "event.value", Event.of(new byte[Settings.DEFAULT_MAX_EVENT_BYTES + 1]),
                "event.key", Event.ofText("", "x"),
                "event.headers", Event.ofText("x").withHeader("", "x"),
                "event.headers[a]", Event.ofText("x").withHeader("a", "\u0000"));
        try (Connection transaction = begin()) {
            wrong.forEach((field, event) -> {
                assertThatExceptionOfType(InvalidInputException.class)
                        .isThrownBy(() -> outbox.publish(transaction, stream, event))
                        .satisfies(e -> assertThat(e.field()).isEqualTo(field));
                assertThatExceptionOfType(InvalidInputException.class)
                        .isThrownBy(() -> outbox.publishAll(transaction, stream, List.of(Event.ofText("good"), event)))
                        .satisfies(e -> assertThat(e.field()).isEqualTo(field));
            });
            for (String unknown : List.of("unknown", "", "Not A Name", "x'; DROP TABLE eventsql.outbox; --")) {
                assertThatExceptionOfType(UnknownStreamException.class)
                        .isThrownBy(() -> outbox.publish(transaction, unknown, Event.ofText("x")));
            }
            List<Event> tooMany = Collections.nCopies(Settings.DEFAULT_MAX_BATCH_EVENTS + 1, Event.ofText("x"));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publishAll(transaction, stream, tooMany))
                    .withMessageContaining("settings.maxBatchEvents");
            List<Event> tooLarge = Collections.nCopies(3, Event.of(new byte[3 << 20]));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> outbox.publishAll(transaction, stream, tooLarge))
                    .withMessageContaining("settings.maxBatchBytes");
            outbox.publishAll(transaction, stream, List.of());
            outbox.publish(transaction, stream, Event.ofText("key", "good"));
            transaction.commit();
        }
        assertStoredBeforeTheLast("good");
    }

    @Test
    void publish_transactionHasFailed_errorSaysSo() throws SQLException {
        try (Connection transaction = begin()) {
            assertThatExceptionOfType(SQLException.class).isThrownBy(() -> Sql.query(transaction, "SELECT 1/0"));
            assertThatExceptionOfType(EventSqlException.class)
                    .isThrownBy(() -> outbox.publish(transaction, stream, Event.ofText("x")))
                    .withMessageContaining("cannot be committed")
                    .withCauseInstanceOf(SQLException.class);
        }
    }

    @Test
    void publish_databaseWithoutOutbox_errorNamesBuilderOption() throws SQLException {
        try (Connection transaction = TestCluster.newDatabase().getConnection()) {
            transaction.setAutoCommit(false);
            assertThatExceptionOfType(EventSqlException.class)
                    .isThrownBy(() -> outbox.publish(transaction, stream, Event.ofText("x")))
                    .withMessageContaining("EventSqlBuilder.outbox");
        }
    }
}
