package io.eventsql.contract;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ContinuousAggregate;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.fixture.Pools;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** The main class of a process with a member of a continuous aggregate. Prints {@code READY} once it has started. */
public final class AggregateProcess {
    private AggregateProcess() {}

    /** Arguments: JDBC URL, user, password, name of the aggregate, stream, and whether it begins a rebuild. */
    public static void main(String[] args) throws Exception {
        try (HikariDataSource pool =
                        Pools.pool(args[0], args[1], args[2], config -> config.setConnectionTimeout(5_000));
                EventSql eventSql = EventSql.builder(pool)
                        .settings(Settings.builder()
                                .lease(Duration.ofSeconds(1))
                                .heartbeat(Duration.ofMillis(200))
                                .build())
                        .build()) {
            ContinuousAggregate aggregate = eventSql.startContinuousAggregate(AggregateModel.spec(args[3], args[4]));
            if (Boolean.parseBoolean(args[5])) {
                beginRebuild(aggregate);
            }
            System.out.println("READY");
            System.in.transferTo(System.err); // until it is killed, or its parent ends
        }
    }

    private static void beginRebuild(ContinuousAggregate aggregate) throws InterruptedException {
        try {
            aggregate.rebuild();
        } catch (EventSqlException e) {
            TimeUnit.MILLISECONDS.sleep(200);
            aggregate.rebuild();
        }
    }
}
