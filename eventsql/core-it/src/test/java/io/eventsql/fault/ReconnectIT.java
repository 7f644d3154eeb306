package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ReconnectingDataSource;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Pools;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.postgresql.PGConnection;

/** A pool over a {@link ReconnectingDataSource} outlasts a crash of its database. */
class ReconnectIT {
    private static int serverOf(Connection connection) throws SQLException {
        try (connection) {
            return connection.unwrap(PGConnection.class).getBackendPID();
        }
    }

    @Test
    void getConnection_databaseCrashes_waitsUntilItIsBack() throws Exception {
        try (EmbeddedEventsDb database = EmbeddedEventsDb.builder().start();
                HikariDataSource pool = Pools.pool(database, database.jdbcUrl(), Pools::reconnecting)) {
            int before = serverOf(pool.getConnection());
            database.crash();
            pool.getHikariPoolMXBean().softEvictConnections();
            CompletableFuture<Integer> after = CompletableFuture.supplyAsync(() -> {
                try {
                    return serverOf(pool.getConnection());
                } catch (SQLException e) {
                    throw new AssertionError(e);
                }
            });
            await().until(() -> pool.getHikariPoolMXBean().getThreadsAwaitingConnection() == 1);
            assertThat(after).isNotDone();
            database.restart();
            assertThat(after.get(1, TimeUnit.MINUTES)).isNotEqualTo(before);
        }
    }
}
