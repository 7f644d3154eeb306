package io.eventsql.fault;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/** A new database on a server, behind a proxy of its own, and a way past the proxy. */
record ProxiedDatabase(FaultProxy proxy, HikariDataSource pool, DataSource direct) implements AutoCloseable {
    private static final AtomicInteger DATABASES = new AtomicInteger();

    static ProxiedDatabase on(EmbeddedEventsDb eventsDb) throws SQLException {
        DataSource direct = eventsDb.createDatabase("proxied" + DATABASES.incrementAndGet());
        String url;
        try (Connection connection = direct.getConnection()) {
            url = connection.getMetaData().getURL();
        }
        FaultProxy proxy = FaultProxy.to(url.replaceFirst("[?].*", ""));
        return new ProxiedDatabase(proxy, Pools.pool(eventsDb, proxy.jdbcUrl()), direct);
    }

    @Override
    public void close() {
        pool.close();
        proxy.close();
    }
}
