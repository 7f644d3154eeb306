package io.eventsql.erase;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ErasureSpec;
import io.eventsql.EventSql;
import io.eventsql.fixture.Pools;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/** The main class of a process that erases a key in small steps. Prints {@code DONE}; it may be killed at any moment. */
public final class ErasureProcess {
    private ErasureProcess() {}

    /** Arguments: comma-separated JDBC URLs of the shards, user, password, stream, key. */
    public static void main(String[] args) {
        List<HikariDataSource> shards = Stream.of(args[0].split(","))
                .map(url -> Pools.pool(url, args[1], args[2], config -> {
                    config.setConnectionTimeout(30_000);
                    config.setMaximumPoolSize(4);
                }))
                .toList();
        try (EventSql eventSql = EventSql.builder(shards).build()) {
            eventSql.erase(ErasureSpec.of(args[3], args[4]).withStepEvents(10).withPause(Duration.ofMillis(20)));
        }
        System.out.println("DONE");
    }
}
