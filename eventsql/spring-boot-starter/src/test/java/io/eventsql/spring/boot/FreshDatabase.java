package io.eventsql.spring.boot;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.TestPools;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** A pool over a new database, which can be made to hang. */
final class FreshDatabase implements AutoCloseable {
    private static final AtomicInteger DATABASES = new AtomicInteger();

    private final HikariDataSource pool;
    private final AtomicInteger hanging = new AtomicInteger();
    private volatile CountDownLatch gate = new CountDownLatch(0);

    FreshDatabase(EventsDb server) {
        pool = TestPools.newPool(server.createDatabase("observed_" + DATABASES.incrementAndGet()));
    }

    DataSource dataSource() {
        return new DelegatingDataSource(pool) {
            @Override
            public Connection getConnection() throws SQLException {
                hanging.incrementAndGet();
                try {
                    gate.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new SQLException("interrupted", e);
                } finally {
                    hanging.decrementAndGet();
                }
                return super.getConnection();
            }
        };
    }

    /** From now on nobody gets a connection, nor an answer. */
    void hang() {
        gate = new CountDownLatch(1);
    }

    /** How many wait for a connection. */
    int hanging() {
        return hanging.get();
    }

    void goOn() {
        gate.countDown();
    }

    @Override
    public void close() {
        goOn();
        pool.close();
    }
}
