package io.eventsql.spring.internal.listener;

import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.StreamSpec;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlListenerAutoConfiguration;
import io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.fixture.TestServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** One database of a test class; a stream for each test; applications over it. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ListenerFixture {
    private static final AtomicInteger STREAMS = new AtomicInteger();

    HikariDataSource pool;
    EventSql eventSql;
    String stream;

    static DataSource newDatabase() {
        return TestServer.newDatabase();
    }

    static HikariDataSource pool(DataSource database) {
        return TestPools.newPool(database);
    }

    @BeforeAll
    void open() {
        pool = pool(newDatabase());
        eventSql = EventSql.builder(pool).build();
    }

    @AfterAll
    void close() {
        eventSql.close();
        pool.close();
    }

    /** A stream with one partition, whose name applications get as property {@code stream}. */
    @BeforeEach
    void newStream() {
        stream = "s" + STREAMS.incrementAndGet();
        eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
    }

    ApplicationContextRunner application() {
        return applicationWithoutDataSource()
                .withBean("dataSource", DataSource.class, () -> pool, bean -> bean.setDestroyMethodName(""));
    }

    ApplicationContextRunner applicationWithoutDataSource() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        JacksonAutoConfiguration.class,
                        EventSqlAutoConfiguration.class,
                        EventSqlTemplateAutoConfiguration.class,
                        EventSqlListenerAutoConfiguration.class))
                .withPropertyValues("stream=" + stream, "eventsql.listener.retry-max-delay=1ms");
    }

    void publish(String... texts) {
        for (String text : texts) {
            eventSql.publisher().publish(stream, Event.ofText("key", text));
        }
    }

    void publish(String text, Map<String, String> headers) {
        eventSql.publisher().publish(stream, new Event("key", text.getBytes(StandardCharsets.UTF_8), headers));
    }

    void awaitLag(long lag) {
        awaitLag("c", lag);
    }

    void awaitLag(String consumer, long lag) {
        await().atMost(Duration.ofSeconds(120))
                .pollInterval(Duration.ofMillis(10))
                .until(() -> {
                    var states = eventSql.consumer(stream, consumer).state();
                    return !states.isEmpty()
                            && states.stream().mapToLong(PartitionState::lag).sum() == lag;
                });
    }

    /** Returns whether a thread for listeners keeps the process alive. */
    static boolean keepingAlive() {
        return Thread.getAllStackTraces().keySet().stream()
                .anyMatch(thread -> thread.getName().equals("eventsql-listeners") && !thread.isDaemon());
    }
}
