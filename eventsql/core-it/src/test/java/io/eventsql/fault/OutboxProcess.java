package io.eventsql.fault;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

/**
 * The main class of a process that publishes inside transactions and relays. Prints {@code READY}, and {@code DONE} when
 * it has ended in order, after its standard input ended; it may be killed at any moment.
 */
final class OutboxProcess {
    /** Leaves the processors to all the others of the test. */
    private static final int PAUSE_MAX_MS = 40;

    private OutboxProcess() {}

    /**
     * Arguments: user, password, JDBC URLs of the shards, of databases with an outbox alone, of the databases to write to
     * (each several, with commas between), stream, name of the process, seed.
     */
    public static void main(String[] args) throws Exception {
        List<HikariDataSource> shards = pools(args, args[2]);
        List<HikariDataSource> apart = pools(args, args[3]);
        List<HikariDataSource> written = pools(args, args[4]);
        Random random = new Random(Long.parseLong(args[7]));
        try (EventSql eventSql = EventSql.builder(shards)
                .outbox(apart.toArray(HikariDataSource[]::new))
                .settings(settings().build())
                .build()) {
            List<OutboxLoad> loads = new ArrayList<>();
            for (HikariDataSource database : written) {
                OutboxLoad load = new OutboxLoad(database, eventSql.outbox(), args[5]);
                load.start(args[6] + "d" + loads.size() + "a", random, PAUSE_MAX_MS);
                load.start(args[6] + "d" + loads.size() + "b", random, PAUSE_MAX_MS);
                loads.add(load);
            }
            System.out.println("READY");
            while (System.in.read() >= 0) {
                Thread.onSpinWait();
            }
            for (OutboxLoad load : loads) {
                load.stop();
            }
        }
        System.out.println("DONE");
        System.exit(0);
    }

    private static List<HikariDataSource> pools(String[] args, String urls) {
        return Stream.of(urls.split(",", -1))
                .filter(url -> !url.isEmpty())
                .map(url -> Pools.pool(url, args[0], args[1], config -> {
                    config.setConnectionTimeout(10_000);
                    config.setMaximumPoolSize(8);
                }))
                .toList();
    }

    /** The settings of all processes: a short lease, and small pages, so that much is moved in many transactions. */
    static Settings.Builder settings() {
        return Settings.builder()
                .outboxLease(Duration.ofSeconds(1))
                .outboxPageEvents(50)
                .maxBatchEvents(200)
                .networkTimeout(Duration.ofSeconds(5));
    }
}
