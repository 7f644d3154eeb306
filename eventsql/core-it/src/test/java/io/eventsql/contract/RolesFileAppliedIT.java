package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.fixture.MigrationFiles;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: {@code roles.sql} gives the tables and functions of a database to the owner, whatever was there before. Method: the database
 * of each test is empty at first, and has tables when the file is applied.
 */
class RolesFileAppliedIT extends RolesFixture {
    @BeforeEach
    @Override
    void prepareDatabase() {
        database = TestCluster.newDatabase();
    }

    /** One role had owned everything, and streams with events exist. */
    @Test
    void rolesFile_appliedToADatabaseInUse_givesStreamsToTheOwner() throws Exception {
        try (HikariDataSource first = TestCluster.pool(database);
                EventSql eventSql = open(first)) {
            eventSql.createStream(STREAM.asJson());
            publish(eventSql, 0, 150);
        }

        Roles.apply(database, "eventsql");

        assertAppendFunctionsAreLikeAppend(1);
        publish(as("eventsql_publisher"), 150, 350);
        HikariDataSource reader = login("eventsql_reader");
        read(open(reader), "orders", 350);
        assertThat(Sql.queryLong(reader, "SELECT count(*) FROM eventsql.events_orders__json"))
                .isEqualTo(350);
    }

    @Test
    void rolesFile_otherSchema_works() throws Exception {
        Settings settings =
                Settings.builder().schema("my_events").maxBatchEvents(50).build();
        try (HikariDataSource first = TestCluster.pool(database);
                EventSql eventSql = EventSql.builder(first).settings(settings).build()) {
            eventSql.createStream(STREAM);
        }

        Roles.apply(database, "my_events");

        try (EventSql publisher =
                EventSql.builder(login("eventsql_publisher")).settings(settings).build()) {
            publish(publisher, 0, 250);
        }
        try (EventSql reader =
                EventSql.builder(login("eventsql_reader")).settings(settings).build()) {
            read(reader, "orders", 250);
        }
    }

    /** The administrator of a managed service may create roles, but is no superuser. */
    @Test
    void rolesFile_appliedByWhoMayCreateRoles_givesAllToTheOwner() throws Exception {
        String administrator = Roles.create();
        Sql.execute(TestCluster.server().adminDataSource(), "ALTER ROLE " + administrator + " CREATEROLE");
        Sql.execute(
                Roles.admin(database),
                "ALTER DATABASE "
                        + Sql.query(database, "SELECT current_database()").getFirst() + " OWNER TO " + administrator);
        try (HikariDataSource pool = Roles.pool(database, administrator)) {
            EventSql.builder(pool).build().close();
            // Roles of other names, because those of the other tests exist.
            String file = Roles.file().replace("eventsql_", "managed_");
            Sql.execute(pool, file);
            Sql.execute(pool, file);
            assertThat(Sql.query(pool, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'eventsql'"))
                    .containsExactly("managed_owner");
        }
    }

    /** A login that is a member of the owner's role, and the file is not applied afterwards. */
    @Test
    void migration_byAMemberOfTheOwner_givesWhatItCreatesToTheOwner() throws Exception {
        Sql.execute(database, MigrationFiles.upTo(37, "eventsql", "eventsql."));
        Roles.apply(database, "eventsql");
        HikariDataSource member = login("eventsql_owner");
        EventSql migrating = open(member);
        migrating.createStream(STREAM);

        migrating.deleteStream("orders", migrating.previewDeleteStream("orders").confirmation());

        assertThat(Sql.query(member, """
                SELECT DISTINCT o.owner::regrole::text
                FROM (
                    SELECT proowner AS owner FROM pg_proc WHERE pronamespace = 'eventsql'::regnamespace
                    UNION ALL
                    SELECT relowner FROM pg_class WHERE relnamespace = 'eventsql'::regnamespace) o""")).containsExactly("eventsql_owner");
        assertThat(Sql.query(member, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'events_orders%'"))
                .containsExactly("0");
    }

    /** As the previous one, of version 42: what a member has created is given to the owner afterwards. */
    @Test
    void migration_afterOneThatLeftFunctionsToItsLogin_repairsTheirOwner() throws Exception {
        Sql.execute(database, MigrationFiles.upTo(42, "eventsql", "eventsql."));
        Roles.apply(database, "eventsql");
        HikariDataSource member = login("eventsql_owner");
        String login = Sql.query(member, "SELECT current_user").getFirst();
        Sql.execute(
                Roles.admin(database),
                "ALTER FUNCTION eventsql.drop_key_reader_v1 OWNER TO " + login,
                "ALTER FUNCTION eventsql.open_closed_streams_v1 OWNER TO " + login);

        open(member);

        assertThat(Sql.query(
                        member,
                        "SELECT DISTINCT proowner::regrole::text FROM pg_proc"
                                + " WHERE pronamespace = 'eventsql'::regnamespace"))
                .containsExactly("eventsql_owner");
    }
}
