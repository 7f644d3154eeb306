package io.eventsql.spring.internal.observation;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * The main class of a process of {@link ConsumerMetersProcessIT}. A {@code member} consumes and stops the partition of the
 * event {@code bad}. A {@code publisher} only publishes, and prints its meters, as a scrape would read them.
 */
final class MeteredProcess {
    private static final long SCRAPE_MS = 100;

    private MeteredProcess() {}

    /** Arguments: JDBC URL, user, password, role, interval of the meters in milliseconds. */
    public static void main(String[] args) throws Exception {
        try (HikariDataSource pool = new HikariDataSource()) {
            pool.setJdbcUrl(args[0]);
            pool.setUsername(args[1]);
            pool.setPassword(args[2]);
            Settings settings = Settings.builder().lease(Duration.ofSeconds(2)).build();
            try (EventSql eventSql = EventSql.builder(pool).settings(settings).build()) {
                if (args[3].equals("member")) {
                    consume(eventSql);
                } else {
                    publish(eventSql, Duration.ofMillis(Long.parseLong(args[4])));
                }
            }
        }
    }

    private static void consume(EventSql eventSql) throws InterruptedException {
        eventSql.subscribe(
                ConsumerSpec.of("orders", "mailer")
                        .withFailurePolicy(FailurePolicy.STOP)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                event -> {
                    if (event.text().equals("bad")) {
                        throw new IllegalStateException("thrown by the test");
                    }
                });
        System.out.println("READY");
        TimeUnit.DAYS.sleep(1);
    }

    private static void publish(EventSql eventSql, Duration interval) throws InterruptedException {
        MeterRegistry registry = new SimpleMeterRegistry();
        try (EventSqlGauges gauges = new EventSqlGauges(eventSql, interval, interval, 10)) {
            gauges.bindTo(registry);
            System.out.println("READY");
            while (true) {
                eventSql.publisher().publish("orders", Event.ofText("x"));
                double reporting =
                        registry.get("eventsql.consumers.reporting").gauge().value();
                System.out.println("METERS reporting=" + reporting + " lag=" + sum(registry, "lag") + " age="
                        + sum(registry, "age") + " stopped=" + sum(registry, "stopped") + " members="
                        + sum(registry, "members"));
                TimeUnit.MILLISECONDS.sleep(SCRAPE_MS);
            }
        }
    }

    /** Of no gauge: "none". */
    private static String sum(MeterRegistry registry, String name) {
        var gauges = registry.find("eventsql.consumer." + name).gauges();
        return gauges.isEmpty()
                ? "none"
                : Double.toString(gauges.stream().mapToDouble(Gauge::value).sum());
    }
}
