package io.eventsql.spring;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.AbstractDataSource;

/** Pools of a test, which outlive its applications: these would close a pool that is a bean of theirs. */
public final class TestPools implements AutoCloseable {
    private final List<HikariDataSource> pools = new ArrayList<>();

    /** A pool as tests of this module have it; the caller closes it. */
    public static HikariDataSource newPool(DataSource database) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(database);
        config.setMaximumPoolSize(20);
        config.setMinimumIdle(1);
        return new HikariDataSource(config);
    }

    /** Connections to the database by a new pool, which is open as long as this is. */
    public DataSource pool(DataSource database) {
        HikariDataSource pool = newPool(database);
        pools.add(pool);
        return new AbstractDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                return pool.getConnection();
            }

            @Override
            public Connection getConnection(String username, String password) throws SQLException {
                return pool.getConnection(username, password);
            }
        };
    }

    @Override
    public void close() {
        pools.forEach(HikariDataSource::close);
        pools.clear();
    }
}
