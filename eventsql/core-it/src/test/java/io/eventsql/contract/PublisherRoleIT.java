package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: a publisher can publish and add segments, also where default privileges keep functions from PUBLIC: {@code roles.sql} grants
 * those that run with the caller's rights. What it must not do is in {@link DeniedStatementsIT}.
 */
class PublisherRoleIT extends RolesFixture {
    @Override
    DataSource createDatabase() throws Exception {
        return RolesDatabases.create(false);
    }

    @Test
    void publisher_acrossSegments_segmentsAreAddedAndReadable() throws SQLException {
        EventSql publisher = as("eventsql_publisher");

        publish(publisher, 0, 430);

        read(as("eventsql_reader"), "orders", 430);
        await().untilAsserted(() -> assertThat(segments()).hasSizeGreaterThan(5));
        assertThat(Sql.query(ownerPool, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'eventsql'"))
                .containsExactly("eventsql_owner");
    }

    @ParameterizedTest
    @EnumSource
    void publisher_versionExpected_isComparedAndReaderReadsTheKey(Storage storage) throws SQLException {
        owner.createStream(
                StreamSpec.of("accounts").withPartitions(1).withStorage(storage).withKeyIndex());
        DataSource login = login("eventsql_publisher");
        EventSql publisher = as("eventsql_publisher");
        publisher.publisher().publish("accounts", Event.ofText("a", "1"), ExpectedVersion.NONE);
        try (Connection transaction = login.getConnection()) {
            transaction.setAutoCommit(false);
            publisher.outbox().publish(transaction, "accounts", Event.ofText("a", "2"), ExpectedVersion.of(1));
            transaction.commit();
        }
        as("eventsql_relay");
        await().until(() -> publisher.keyVersion("accounts", "a") == 2);
        assertThatExceptionOfType(VersionConflictException.class)
                .isThrownBy(
                        () -> publisher.publisher().publish("accounts", Event.ofText("a", "3"), ExpectedVersion.of(1)));
        assertThat(as("eventsql_reader").readKey("accounts", "a").events()).hasSize(2);
    }

    @Test
    void publisher_ofASink_appendsOnce() throws SQLException {
        HikariDataSource login = login("eventsql_publisher");
        String append = """
                SELECT eventsql.append_sink_v1(
                    'totals', '00000000-0000-0000-0000-000000000001', 1, p.map_version, NULL, 0, s.name, s.stream_id, 0,
                    ARRAY['k'], ARRAY['v'::bytea], ARRAY[NULL]::text[])
                FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
                WHERE s.name = 'orders' AND p.partition = 0""";
        assertThat(Sql.query(login, append)).containsExactly("t");
        assertThat(Sql.query(login, append)).containsExactly("f");
        assertThat(Sql.query(login, "SELECT sink FROM eventsql.sink_producer")).containsExactly("totals");
        assertThat(Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.events_orders"))
                .isEqualTo(1);
    }

    /** A process that may not relay publishes to the outbox all the same; one that may, relays. */
    @Test
    void publisher_inTransaction_isRelayedByARoleThatMay() throws SQLException {
        owner.close();
        HikariDataSource pool = login("eventsql_publisher");
        EventSql publisher = open(pool);
        publishInTransactions(publisher, pool, 100);
        assertThat(Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.outbox"))
                .isEqualTo(100);

        try (EventSql relay = as("eventsql_relay")) {
            await().untilAsserted(
                            () -> assertThat(Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.events_orders"))
                                    .isEqualTo(100));
            assertThat(relay.outbox().backlogs().getFirst().events()).isZero();
        }
        read(as("eventsql_reader"), "orders", 100);
    }

    /** Also a process that only publishes reports the lag of consumers whose members are dead. */
    @Test
    void publisher_reportsConsumers_withoutReadingThem() throws SQLException {
        owner.subscribe(ConsumerSpec.of("orders", "mailer"), event -> {}).close();
        publish(owner, 0, 150);
        EventSql publisher = as("eventsql_publisher");

        assertThat(publisher.reportConsumers(0, 10, Duration.ofMinutes(1)).orElseThrow())
                .singleElement()
                .satisfies(summary -> {
                    assertThat(summary.lag()).isEqualTo(150);
                    assertThat(summary.behind()).isPositive();
                });
        assertThat(as("eventsql_reader").consumers().consumers()).hasSize(1);
        assertThat(publisher.consumers().unavailableShards().values())
                .singleElement()
                .asString()
                .contains("lacks a privilege");
        assertDenied(login("eventsql_publisher"), "UPDATE eventsql.consumer_reporter SET reporter_id = NULL");
        publisher.close();
        assertThat(as("eventsql_reader").reportConsumers(0, 10, Duration.ofMinutes(1)))
                .isPresent();
    }

    /** As docs/security.md says. */
    @Test
    void createStream_withTheRightToExecuteItsFunctions_itsTablesBelongToTheOwner() throws SQLException {
        Sql.execute(
                ownerPool,
                "GRANT EXECUTE ON FUNCTION eventsql.slots_of_new_stream_v1, eventsql.create_keyed_stream_v1,"
                        + " eventsql.close_new_stream_v1, eventsql.create_partitions_v1 TO eventsql_publisher");
        EventSql publisher = as("eventsql_publisher");
        publisher.createStream(StreamSpec.of("more").withPartitions(2));
        publisher.publisher().publish("more", Event.ofText("k", "v"));
        assertThat(Sql.query(
                        ownerPool,
                        "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'eventsql' AND tablename LIKE"
                                + " 'events_more%'"))
                .containsExactly("eventsql_owner");
    }
}
