package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.agroal.api.AgroalDataSource;
import io.agroal.api.configuration.supplier.AgroalDataSourceConfigurationSupplier;
import io.agroal.api.security.NamePrincipal;
import io.agroal.api.security.SimplePassword;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.load.EveryOperation;
import io.eventsql.internal.pool.PoolSize;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: every connection goes back to its pool as it was borrowed: with the network timeout, autocommit mode, isolation level
 * and read-only mode that it had. Not every pool resets them.
 *
 * <p>Method: pools of several vendors, with settings other than the library's, compare each connection when it is borrowed and
 * when it is returned, while the library is used in every way; at the end all connections are borrowed again.
 */
@Timeout(180)
class PoolSettingsIT {
    private static final String STREAM = "pooled";
    private static final int SIZE = 12;
    private static final int NETWORK_TIMEOUT_SECONDS = 77;

    private enum Pool {
        HIKARI {
            @Override
            DataSource create(String url, String user, String password, boolean autoCommit) {
                HikariConfig config = new HikariConfig();
                config.setJdbcUrl(url);
                config.setUsername(user);
                config.setPassword(password);
                config.setAutoCommit(autoCommit);
                config.setMaximumPoolSize(SIZE);
                return new HikariDataSource(config);
            }
        },
        DBCP {
            @Override
            DataSource create(String url, String user, String password, boolean autoCommit) {
                BasicDataSource pool = new BasicDataSource();
                pool.setUrl(url);
                pool.setUsername(user);
                pool.setPassword(password);
                pool.setDefaultAutoCommit(autoCommit);
                pool.setAutoCommitOnReturn(false);
                pool.setMaxTotal(SIZE);
                pool.setMaxIdle(SIZE);
                pool.setMaxWait(Duration.ofSeconds(30));
                pool.setAccessToUnderlyingConnectionAllowed(true);
                return pool;
            }
        },
        AGROAL {
            @Override
            DataSource create(String url, String user, String password, boolean autoCommit) throws SQLException {
                return AgroalDataSource.from(new AgroalDataSourceConfigurationSupplier()
                        .connectionPoolConfiguration(pool -> pool.maxSize(SIZE)
                                .acquisitionTimeout(Duration.ofSeconds(30))
                                .connectionFactoryConfiguration(factory -> factory.jdbcUrl(url)
                                        .autoCommit(autoCommit)
                                        .principal(new NamePrincipal(user))
                                        .credential(new SimplePassword(password)))));
            }
        };

        abstract DataSource create(String url, String user, String password, boolean autoCommit) throws SQLException;
    }

    /** What the library may change on a connection. */
    private record State(int networkTimeoutMs, boolean autoCommit, int isolation, boolean readOnly) {
        static State of(Connection connection) throws SQLException {
            return new State(
                    connection.getNetworkTimeout(),
                    connection.getAutoCommit(),
                    connection.getTransactionIsolation(),
                    connection.isReadOnly());
        }
    }

    /** Compares each connection when it is borrowed and when it is returned. */
    private static final class Compared extends DelegatingDataSource {
        private final List<String> changes = new CopyOnWriteArrayList<>();

        Compared(DataSource pool) {
            super(pool);
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            State borrowed = State.of(connection);
            return (Connection) Proxy.newProxyInstance(
                    Compared.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                        if (method.getName().equals("close") && !connection.isClosed()) {
                            State returned = State.of(connection);
                            if (!returned.equals(borrowed)) {
                                changes.add(Thread.currentThread().getName() + ": " + borrowed + " became " + returned);
                            }
                        }
                        try {
                            return method.invoke(connection, arguments);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
        }
    }

    /**
     * Both modes, and the creation of the tables, with the pool that resets the least when a connection is returned; one mode with
     * each other pool.
     */
    @ParameterizedTest(name = "{0}, autocommit: {1}")
    @CsvSource({"HIKARI, true", "DBCP, true", "DBCP, false", "AGROAL, false"})
    void everyOperation_anyPool_returnsConnectionsUnchanged(Pool vendor, boolean autoCommit) throws Exception {
        EventsDb server = TestCluster.server();
        String url;
        DataSource database = vendor == Pool.DBCP ? TestCluster.newDatabase() : TestCluster.newDatabaseWithTables();
        try (Connection connection = database.getConnection()) {
            url = connection.getMetaData().getURL();
        }
        String separator = url.contains("?") ? "&" : "?";
        DataSource pool = vendor.create(
                url + separator + "socketTimeout=" + NETWORK_TIMEOUT_SECONDS,
                server.username(),
                server.password(),
                autoCommit);
        try (AutoCloseable ignored = (AutoCloseable) pool) {
            assertThat(PoolSize.max(pool)).hasValue(SIZE);
            Compared compared = new Compared(pool);
            try (EventSql eventSql = EventSql.builder(compared)
                    .settings(Settings.builder().lease(Duration.ofSeconds(2)).build())
                    .build()) {
                eventSql.createStream(StreamSpec.of(STREAM).withPartitions(2).withSegmentSize(100));
                EveryOperation.run(eventSql, STREAM, pool);
            }
            assertThat(compared.changes).isEmpty();
            assertThat(borrowAll(pool))
                    .containsOnly(new State(
                            NETWORK_TIMEOUT_SECONDS * 1_000, autoCommit, Connection.TRANSACTION_READ_COMMITTED, false));
        }
    }

    private static List<State> borrowAll(DataSource pool) throws SQLException {
        List<Connection> borrowed = new ArrayList<>();
        List<State> states = new ArrayList<>();
        try {
            for (int i = 0; i < SIZE; i++) {
                borrowed.add(pool.getConnection());
                states.add(State.of(borrowed.getLast()));
            }
        } finally {
            for (Connection connection : borrowed) {
                connection.close();
            }
        }
        return states;
    }
}
