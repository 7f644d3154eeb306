package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/** Each reason for which databases cannot be opened is named, with a remedy, and leaves nothing behind. */
@Timeout(60)
class OpenErrorsIT {
    private static void assertFails(DataSource dataSource, Settings settings, String... inMessage) {
        Set<String> threads = libraryThreads();
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(
                        () -> EventSql.builder(dataSource).settings(settings).build())
                .satisfies(e -> assertThat(e.getMessage()).contains(inMessage));
        assertThat(libraryThreads()).as("threads left behind").isEqualTo(threads);
    }

    private static void assertFails(DataSource dataSource, String... inMessage) {
        assertFails(dataSource, Settings.defaults(), inMessage);
    }

    private static Set<String> libraryThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("eventsql-"))
                .collect(Collectors.toSet());
    }

    private static PGSimpleDataSource unpooled(String url, String user, String password) {
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        dataSource.setUrl(url);
        dataSource.setUser(user);
        dataSource.setPassword(password);
        return dataSource;
    }

    @Test
    void wrongPassword_isNamed() {
        EventsDb server = TestCluster.server();
        assertFails(
                unpooled(server.jdbcUrl(), server.username(), "wrong"),
                "rejected the login",
                "password authentication failed",
                "Check the user name");
        try (HikariDataSource pool = Pools.pool(server.jdbcUrl(), "unknown_user", "wrong", config -> {})) {
            assertFails(pool, "rejected the login", "unknown_user");
        }
        HikariDataSource failingFast = new HikariDataSource();
        failingFast.setJdbcUrl(server.jdbcUrl());
        failingFast.setUsername("unknown_user");
        failingFast.setPassword("wrong");
        try (failingFast) {
            assertFails(failingFast, "rejected the login", "unknown_user");
        }
    }

    @Test
    void missingDatabase_isNamed() {
        EventsDb server = TestCluster.server();
        assertFails(
                unpooled(server.jdbcUrl() + "_missing", server.username(), server.password()),
                "the database does not exist",
                "JDBC URL");
    }

    @Test
    void roleWithoutRights_isNamed() throws SQLException {
        EventsDb server = TestCluster.server();
        DataSource database = TestCluster.newDatabaseWithTables();
        Sql.execute(server.adminDataSource(), "CREATE ROLE without_rights LOGIN PASSWORD 'secret'");
        String url = ((PGSimpleDataSource) database).getUrl();
        assertFails(
                unpooled(url, "without_rights", "secret"),
                "the role lacks a right",
                "permission denied for schema eventsql");
    }

    @Test
    void roleThatMayNotCreateTheSchema_isNamed() throws SQLException {
        EventsDb server = TestCluster.server();
        DataSource database = TestCluster.newDatabase();
        Sql.execute(server.adminDataSource(), "CREATE ROLE may_not_create LOGIN PASSWORD 'secret'");
        assertFails(
                unpooled(((PGSimpleDataSource) database).getUrl(), "may_not_create", "secret"),
                "the role lacks a right",
                "permission denied for database");
    }

    @Test
    void migrationDisabledOnAnEmptySchema_namesTheFiles() {
        Settings settings = Settings.builder().migrateSchema(false).build();
        assertFails(
                TestCluster.newDatabase(), settings, "lacks outbox/V1__outbox.sql", "settings.migrateSchema is off");
    }

    @Test
    void otherSchemaThanBefore_isNamed() throws SQLException {
        DataSource database = TestCluster.newDatabaseWithTables();
        assertFails(
                database,
                Settings.builder().migrateSchema(false).schema("other").build(),
                "The schema other",
                "tables in the schema eventsql",
                "settings.schema");
    }

    @Test
    void noPostgreSql_isNamed() {
        DataSource other = new DelegatingDataSource(TestCluster.newDatabase()) {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = super.getConnection();
                DatabaseMetaData metaData = connection.getMetaData();
                DatabaseMetaData ofOther = proxy(DatabaseMetaData.class, metaData, "getDatabaseProductName", "H2");
                return proxy(Connection.class, connection, "getMetaData", ofOther);
            }
        };
        assertFails(other, "is H2", "needs PostgreSQL 15 or later");
    }

    private static <T> T proxy(Class<T> type, T delegate, String method, Object result) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, called, arguments) -> {
                    if (called.getName().equals(method)) {
                        return result;
                    }
                    try {
                        return called.invoke(delegate, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }

    @Test
    void severalDatabases_eachCauseIsNamed() {
        EventsDb server = TestCluster.server();
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> EventSql.builder(List.of(
                                unpooled(server.jdbcUrl(), server.username(), "wrong"),
                                unpooled(server.jdbcUrl() + "_missing", server.username(), server.password())))
                        .build())
                .withMessageContaining("None of the 2 databases")
                .withMessageContaining("database 1 of 2: the server rejected the login")
                .withMessageContaining("database 2 of 2: the database does not exist");
    }
}
