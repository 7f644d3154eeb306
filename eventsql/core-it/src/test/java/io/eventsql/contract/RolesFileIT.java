package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Goal: with {@code roles.sql}, new streams have the rights and grants of what exists, and no name of a stream or object gains a
 * right.
 */
class RolesFileIT extends RolesFixture {
    @Test
    void owner_clears() throws SQLException {
        publish(as("eventsql_publisher"), 0, 150);
        assertThat(owner.clear("orders", owner.previewClear("orders").confirmation()))
                .isEqualTo(150);
        publish(as("eventsql_publisher"), 150, 250);
    }

    @Test
    void grantOnAStream_isCopiedToNewSegments_andToExistingOnesOnRequest() throws SQLException {
        HikariDataSource report = login();
        String login = Sql.query(report, "SELECT current_user").getFirst();
        Sql.execute(
                ownerPool,
                "GRANT USAGE ON SCHEMA eventsql TO PUBLIC",
                "GRANT SELECT ON eventsql.events_orders TO " + login,
                "REVOKE SELECT ON eventsql.events_orders FROM eventsql_reader");
        EventSql publisher = as("eventsql_publisher");
        publish(publisher, 0, 600);

        assertThat(Sql.queryLong(report, "SELECT count(*) FROM eventsql.events_orders__p0_s5"))
                .isEqualTo(100);
        assertDenied(login("eventsql_reader"), "SELECT FROM eventsql.events_orders__p0_s5");
        assertDenied(report, "SELECT FROM eventsql.events_orders__p0_s0");

        Sql.execute(ownerPool, "SELECT eventsql.apply_stream_grants_v1('orders')");

        assertThat(Sql.queryLong(report, "SELECT count(*) FROM eventsql.events_orders__p0_s0"))
                .isEqualTo(100);
        assertDenied(login("eventsql_reader"), "SELECT FROM eventsql.events_orders__p0_s0");
    }

    /** The streams have been created by the owner's role, after the file was applied. */
    @Test
    void appendFunctionOfAStream_hasOwnerRightsAndGrantsOfAppend() throws SQLException {
        assertAppendFunctionsAreLikeAppend(1);
        HikariDataSource publisher = login("eventsql_publisher");
        Sql.execute(ownerPool, "REVOKE EXECUTE ON FUNCTION eventsql.append_v1 FROM eventsql_publisher");
        publish(open(publisher), 0, 200); // by the function of the stream

        Sql.execute(
                ownerPool,
                "GRANT EXECUTE ON FUNCTION eventsql.append_v1 TO eventsql_publisher",
                "REVOKE EXECUTE ON FUNCTION eventsql.append_v2_" + streamId() + " FROM eventsql_publisher");
        publish(open(publisher), 200, 400); // by append_v1

        assertDenied(
                login("eventsql_reader"),
                "SELECT eventsql.append_v2_" + streamId()
                        + "(gen_random_uuid(), 1, 1, NULL, 0, 'orders', '{0}', '{1}', NULL, NULL, '{k}', '{x}', '{NULL}')");
        read(as("eventsql_reader"), "orders", 400);
    }

    @Test
    void grantOnAppend_isCopiedToTheFunctionsOfStreamsOnRequest() throws SQLException {
        HikariDataSource custom = login();
        String login = Sql.query(custom, "SELECT current_user").getFirst();
        String function = "eventsql.append_v2_" + streamId();
        String mayAppend = "SELECT has_function_privilege('" + login + "', to_regproc('" + function + "'), 'EXECUTE')";

        Sql.execute(ownerPool, "GRANT EXECUTE ON FUNCTION eventsql.append_v1 TO " + login);
        assertThat(Sql.query(ownerPool, mayAppend)).containsExactly("f");
        Sql.query(ownerPool, "SELECT eventsql.apply_append_grants_v1()");
        assertThat(Sql.query(ownerPool, mayAppend)).containsExactly("t");
        assertAppendFunctionsAreLikeAppend(1);

        Sql.execute(ownerPool, "REVOKE EXECUTE ON FUNCTION eventsql.append_v1 FROM " + login);
        Sql.query(ownerPool, "SELECT eventsql.apply_append_grants_v1()");
        assertThat(Sql.query(ownerPool, mayAppend)).containsExactly("f");
        assertAppendFunctionsAreLikeAppend(1);
    }

    private long streamId() throws SQLException {
        return Sql.queryLong(ownerPool, "SELECT stream_id FROM eventsql.stream WHERE name = 'orders'");
    }

    @Test
    void rolesFile_appliedAgain_keepsWorking() throws Exception {
        publish(as("eventsql_publisher"), 0, 150);
        Sql.execute(ownerPool, "GRANT DELETE ON eventsql.producer_batch TO eventsql_publisher");

        Roles.apply(database, "eventsql");

        assertDenied(login("eventsql_publisher"), "DELETE FROM eventsql.producer_batch");
        publish(as("eventsql_publisher"), 150, 400);
        read(as("eventsql_reader"), "orders", 400);
    }

    /** The list in the file of those that only the owner calls is what the SQL files take from PUBLIC. */
    @Test
    void functionsWithRightsOfTheCaller_areGrantedUnlessTakenFromPublic() throws SQLException {
        assertThat(Sql.query(ownerPool, """
                SELECT p.proname FROM pg_proc p
                WHERE p.pronamespace = 'eventsql'::regnamespace AND NOT p.prosecdef
                  AND has_function_privilege('public', p.oid, 'EXECUTE') <> (
                      SELECT count(*) = 4 FROM aclexplode(p.proacl) a
                      WHERE a.grantee::regrole::text IN (
                          'eventsql_publisher', 'eventsql_relay', 'eventsql_consumer', 'eventsql_reader'))""")).isEmpty();
    }

    /** Without a schema before pg_catalog and with pg_temp last, nothing of the caller's is found first. */
    @Test
    void functionsWithRightsOfTheOwner_haveAFixedSearchPath() throws SQLException {
        List<String> definers = Sql.query(ownerPool, """
                SELECT proname || ' ' || coalesce(
                    (SELECT setting FROM unnest(proconfig) AS setting WHERE setting LIKE 'search\\_path=%'), 'none')
                FROM pg_proc
                WHERE pronamespace = 'eventsql'::regnamespace AND prosecdef""");
        assertThat(definers).hasSizeGreaterThan(5).allMatch(one -> one.endsWith(" search_path=pg_catalog, pg_temp"));
        List<String> forAll = Sql.query(ownerPool, """
                SELECT proname FROM pg_proc
                WHERE pronamespace = 'eventsql'::regnamespace AND prosecdef
                  AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0))""");
        assertThat(Set.of("incarnation_v1", "find_incarnation_v1")).containsAll(forAll);
    }

    @Test
    void hostileStreamName_insertedByHand_isOnlyAName() throws SQLException {
        HikariDataSource publisher = login("eventsql_publisher");
        for (String name :
                List.of("x\"; DROP TABLE eventsql.shard; --", "x'y", "%I", "O''Reilly; SELECT 1", "a b", "Ä")) {
            insertStream(name);

            assertThat(Sql.query(
                            publisher,
                            "SELECT eventsql.add_segment_v1(NULL, stream_id, 0, 0) FROM eventsql.stream WHERE name = ?",
                            name))
                    .as(name)
                    .containsExactly("t");
            assertThat(Sql.query(
                            ownerPool, "SELECT count(*) FROM pg_class WHERE relname = ?", "events_" + name + "__p0_s0"))
                    .as(name)
                    .containsExactly("1");
            assertThat(Sql.query(ownerPool, "SELECT count(*) FROM eventsql.shard"))
                    .as(name)
                    .containsExactly("1");
        }
    }

    private void insertStream(String name) throws SQLException {
        String inserted = name.replace("'", "''");
        Sql.execute(
                ownerPool,
                "SET ROLE eventsql_owner",
                "INSERT INTO eventsql.stream (name, table_name, partitions, segment_size, json) VALUES ('" + inserted
                        + "', 'events_" + inserted + "', 1, 100, false)",
                "INSERT INTO eventsql.stream_partition SELECT stream_id, 0, 0, 1 FROM eventsql.stream WHERE name = '"
                        + inserted + "'",
                "INSERT INTO eventsql.producer_batch SELECT stream_id, 0, 0, 0, gen_random_uuid(), 0, now()"
                        + " FROM eventsql.stream WHERE name = '" + inserted + "'",
                "DO $$ BEGIN EXECUTE format('CREATE TABLE eventsql.%I (LIKE eventsql.events_orders)"
                        + " PARTITION BY LIST (partition)', 'events_' || '" + inserted + "'); END $$",
                "RESET ROLE");
    }

    @Test
    void createStream_invalidName_isRefusedByTheFunction() {
        for (String name : List.of("", "a b", "a;b", "a\"b", "a/b", "-a", ".a", "_a", "ä", "x".repeat(101))) {
            assertThatThrownBy(
                            () -> Sql.query(ownerPool, "SELECT eventsql.create_stream_v1(?, 1, 100, false, 1)", name))
                    .as(name)
                    .isInstanceOfSatisfying(
                            SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("22023"));
        }
    }
}
