package io.eventsql.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.MigrationFiles;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;
import liquibase.Contexts;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.exception.LiquibaseException;
import liquibase.resource.ClassLoaderResourceAccessor;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.resource.ResourceAccessor;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: teams that run Flyway or Liquibase apply the library's SQL files with it, next to their own, as docs/schema.md
 * says. Method: library and application are upgraded in turn on one database, each with a history of its own; then the
 * library is opened with {@code migrateSchema} off.
 */
@Timeout(120)
class MigrationToolsIT {
    private static final String VERSIONS = "SELECT version FROM eventsql.schema_version ORDER BY version";
    /**
     * The default schema of a connection would be "eventsql" as soon as that exists, because the role of the tests has
     * this name: search_path is "$user", public.
     */
    private static final String APPLICATION_SCHEMA = "public";

    private static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(2);

    private HikariDataSource database;

    @TempDir
    Path folder;

    @BeforeEach
    void createDatabase() {
        database = TestCluster.pool(TestCluster.newDatabase());
    }

    @AfterEach
    void closePool() {
        database.close();
    }

    private static EventSql openWithoutMigration(DataSource dataSource) {
        return EventSql.builder(dataSource)
                .settings(Settings.builder().migrateSchema(false).build())
                .build();
    }

    private void assertLibraryWorks() {
        try (EventSql eventSql = openWithoutMigration(database)) {
            eventSql.createStream(STREAM);
            Handled handled = new Handled();
            try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
                eventSql.publisher().publish("orders", Event.ofText("key", "x"));
                handled.awaitSize(1).assertOnceAndInOrder();
            }
        }
    }

    /** The versions that the library's own migration leaves in a database. */
    private static List<String> versionsOfTheLibrary() throws SQLException {
        return Sql.query(TestCluster.newDatabaseWithTables(), VERSIONS);
    }

    // Flyway

    private static FluentConfiguration flywayOfTheLibrary(DataSource dataSource, String... locations) {
        return Flyway.configure()
                .dataSource(dataSource)
                .locations(locations)
                .schemas("eventsql")
                .table("eventsql_schema_history");
    }

    private Flyway flywayOfTheApplication() {
        return Flyway.configure()
                .dataSource(database)
                .locations("filesystem:" + folder.resolve("application"))
                .schemas(APPLICATION_SCHEMA)
                .load();
    }

    private void writeFile(String file, String sql) throws IOException {
        Path path = folder.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, sql);
    }

    @Test
    void flyway_libraryAndApplicationUpgradedInTurn_eachHasItsHistory() throws SQLException, IOException {
        String library = "classpath:io/eventsql/db/migration";
        writeFile("application/V1__orders.sql", "CREATE TABLE orders (id text PRIMARY KEY)");
        flywayOfTheApplication().migrate();
        flywayOfTheLibrary(database, library).target("3").load().migrate(); // a release with fewer files

        writeFile("application/V2__customers.sql", "CREATE TABLE customers (id text PRIMARY KEY)");
        flywayOfTheApplication().migrate();
        flywayOfTheLibrary(database, library).load().migrate();
        assertThat(Sql.query(database, VERSIONS)).isEqualTo(versionsOfTheLibrary());
        assertLibraryWorks();

        writeFile("application/V3__bills.sql", "CREATE TABLE bills (id text PRIMARY KEY)");
        writeFile(
                "next/V99__next_release.sql",
                "INSERT INTO eventsql.schema_version (version, description) VALUES (99, 'next release')");
        Flyway next = flywayOfTheLibrary(database, library, "filesystem:" + folder.resolve("next"))
                .load();
        next.migrate();
        flywayOfTheApplication().migrate();
        assertLibraryWorks();

        next.validate();
        flywayOfTheApplication().validate();
        assertThat(Sql.query(
                        database,
                        "SELECT version FROM public.flyway_schema_history WHERE success ORDER BY installed_rank"))
                .containsExactly("1", "2", "3");
        assertThat(Sql.query(
                        database,
                        "SELECT version FROM eventsql.eventsql_schema_history WHERE version IS NOT NULL AND success"
                                + " ORDER BY installed_rank"))
                .isEqualTo(Sql.query(database, VERSIONS));
    }

    @Test
    void flyway_databaseWithAnOutboxAlone_getsItsFilesAndMayBecomeAShard() throws SQLException {
        flywayOfTheLibrary(database, "classpath:io/eventsql/db/migration/outbox")
                .load()
                .migrate();
        assertThat(Sql.query(database, VERSIONS)).containsExactly("1", "14", "15", "22", "40", "42", "44");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> openWithoutMigration(database))
                .withMessageContaining("lacks shard/V2__event_log.sql, ");

        try (TestCluster shards = TestCluster.ofShards(1);
                EventSql eventSql = EventSql.builder(shards.dataSources())
                        .outbox(database)
                        .settings(Settings.builder().migrateSchema(false).build())
                        .build()) {
            assertThat(eventSql.outbox().backlogs()).hasSize(2);
        }
        flywayOfTheLibrary(database, "classpath:io/eventsql/db/migration")
                .outOfOrder(true) // the outbox has a newer file than the shard
                .load()
                .migrate();
        assertThat(Sql.query(database, VERSIONS)).isEqualTo(versionsOfTheLibrary());
    }

    /** The library migrated at start so far, and the team now wants to do it with Flyway. */
    @Test
    void flyway_afterTheLibraryMigrated_takesOverFromABaseline() throws SQLException {
        database.close();
        database = TestCluster.pool(TestCluster.newDatabaseWithTables());
        String newest = Sql.query(database, VERSIONS).getLast();
        Flyway flyway = flywayOfTheLibrary(database, "classpath:io/eventsql/db/migration")
                .baselineOnMigrate(true)
                .baselineVersion(newest)
                .load();
        assertThat(flyway.migrate().migrationsExecuted).isZero();
        flyway.validate();
        assertLibraryWorks();
    }

    /** Flyway's history belongs to the login, and another session of Flyway has read it while a file is applied. */
    @Test
    void flyway_rolesFileWasApplied_continuesFromABaseline() throws Exception {
        Sql.execute(database, MigrationFiles.upTo(46, "eventsql", "eventsql."));
        DataSource unpooled = database.unwrap(PGSimpleDataSource.class);
        Roles.apply(unpooled, "eventsql");
        try (HikariDataSource member = Roles.pool(unpooled, Roles.create("eventsql_owner"))) {
            Flyway flyway = flywayOfTheLibrary(member, "classpath:io/eventsql/db/migration")
                    .baselineOnMigrate(true)
                    .baselineVersion("46")
                    .load();
            assertThat(flyway.migrate().migrationsExecuted).isPositive();
            flyway.validate();
            assertThat(Sql.query(member, VERSIONS)).isEqualTo(versionsOfTheLibrary());
            assertThat(Sql.query(
                            member,
                            "SELECT DISTINCT proowner::regrole::text FROM pg_proc"
                                    + " WHERE pronamespace = 'eventsql'::regnamespace"))
                    .containsExactly("eventsql_owner");
        }
    }

    // Liquibase

    /** @param suffix of the two tables in which Liquibase keeps its history */
    private void updateWithLiquibase(String changelog, ResourceAccessor resources, String suffix)
            throws SQLException, LiquibaseException {
        try (Connection connection = database.getConnection()) {
            Database target =
                    DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            target.setDefaultSchemaName(APPLICATION_SCHEMA);
            target.setDatabaseChangeLogTableName("databasechangelog" + suffix);
            target.setDatabaseChangeLogLockTableName("databasechangeloglock" + suffix);
            try (Liquibase liquibase = new Liquibase(changelog, resources, target)) {
                liquibase.update(new Contexts());
            }
        }
    }

    private void updateLibraryWithLiquibase(String changelog) throws SQLException, LiquibaseException {
        updateWithLiquibase(changelog, new ClassLoaderResourceAccessor(), "_eventsql");
    }

    private void writeChangelogOfTheApplication(int changeSets) throws IOException {
        StringBuilder changelog = new StringBuilder("--liquibase formatted sql\n");
        for (int i = 1; i <= changeSets; i++) {
            changelog.append("--changeset team:%s\nCREATE TABLE application_%s (id text);\n".formatted(i, i));
        }
        writeFile("application.sql", changelog.toString());
    }

    @Test
    void liquibase_libraryAndApplicationUpgradedInTurn_eachHasItsHistory() throws Exception {
        try (ResourceAccessor application = new DirectoryResourceAccessor(folder)) {
            writeChangelogOfTheApplication(1);
            updateWithLiquibase("application.sql", application, "");
            updateLibraryWithLiquibase("io/eventsql/db/changelog-outbox.xml"); // the outbox alone
            assertThat(Sql.query(database, VERSIONS)).containsExactly("1", "14", "15", "22", "40", "42", "44");
            writeChangelogOfTheApplication(2);
            updateWithLiquibase("application.sql", application, "");
            updateLibraryWithLiquibase("io/eventsql/db/changelog.xml");
            writeChangelogOfTheApplication(3);
            updateWithLiquibase("application.sql", application, "");
            updateLibraryWithLiquibase("io/eventsql/db/changelog.xml");
        }
        assertThat(Sql.query(database, VERSIONS)).isEqualTo(versionsOfTheLibrary());
        assertThat(Sql.query(database, "SELECT id FROM databasechangelog ORDER BY orderexecuted"))
                .containsExactly("1", "2", "3");
        assertThat(Sql.query(database, "SELECT id FROM databasechangelog_eventsql ORDER BY orderexecuted"))
                .containsExactly(
                        "schema", "1", "14", "15", "22", "40", "42", "44", "2", "3", "4", "5", "6", "7", "8", "9", "10",
                        "11", "12", "13", "16", "17", "18", "19", "20", "21", "23", "24", "25", "26", "27", "28", "29",
                        "30", "31", "32", "33", "34", "35", "36", "37", "38", "39", "41", "43", "45", "46", "47", "48");
        assertLibraryWorks();
    }
}
