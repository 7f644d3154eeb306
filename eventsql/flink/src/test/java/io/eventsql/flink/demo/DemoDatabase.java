package io.eventsql.flink.demo;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import java.io.IOException;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A database with a stream of orders, and an empty one for results, for scripts/run_flink_query.bash. Prints the options that a
 * table needs, and runs until its input ends.
 */
final class DemoDatabase {
    private static final int ORDERS = 10_000;
    private static final int PORT_ARGUMENT = 0;

    private DemoDatabase() {}

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(arguments[PORT_ARGUMENT]);
        try (EmbeddedEventsDb server = EmbeddedEventsDb.builder().port(port).start()) {
            HikariConfig config = new HikariConfig();
            config.setDataSource(server.dataSource());
            config.setMaximumPoolSize(20);
            try (HikariDataSource pool = new HikariDataSource(config);
                    EventSql eventSql = EventSql.builder(List.of(pool)).build()) {
                eventSql.createStream(StreamSpec.of("orders").withPartitions(4));
                eventSql.createStream(StreamSpec.of("order_totals").withPartitions(4));
                eventSql.publisher()
                        .publishAll(
                                "orders",
                                IntStream.range(0, ORDERS / 2)
                                        .mapToObj(DemoDatabase::order)
                                        .toList());
                eventSql.publisher()
                        .publishAll(
                                "orders",
                                IntStream.range(ORDERS / 2, ORDERS)
                                        .mapToObj(DemoDatabase::order)
                                        .toList());
                System.out.printf(
                        "'url' = '%s', 'username' = '%s', 'password' = '%s'%n",
                        server.jdbcUrl(), server.username(), server.password());
                while (System.in.read() >= 0) {
                    continue;
                }
            }
        }
    }

    private static Event order(int n) {
        String status = n % 10 == 0 ? "cancelled" : "paid";
        return Event.ofText("customer-" + n % 100, "{\"status\": \"%s\", \"cents\": %d}".formatted(status, n % 997));
    }
}
