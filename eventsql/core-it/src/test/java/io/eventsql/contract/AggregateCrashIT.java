package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ContinuousAggregate;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.process.ChildProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: a continuous aggregate counts each event once, whatever is killed at whatever moment, also during a rebuild.
 *
 * <p>Method: two processes with members; while events are published, one of them or the database gets SIGKILL at a random moment. Some
 * processes begin a rebuild. At the end the aggregate is compared with its model, which is computed from the stored events.
 *
 * <p>{@code -Deventsql.test.aggregateKills=N} kills N times instead of twice.
 */
@Timeout(3_600)
class AggregateCrashIT {
    private static final int KILLS = Integer.getInteger("eventsql.test.aggregateKills", 2);
    private static final int PARTITIONS = 3;
    private static final int PAUSE_MS_MAX = 500;
    private static final String STREAM = "orders";
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    @TempDir
    private Path folder;

    private final Random random = Seeds.random("AggregateCrashIT");
    private EmbeddedEventsDb eventsDb;
    private HikariDataSource pool;
    private EventSql eventSql;
    private final List<ChildProcess> processes = new ArrayList<>();

    @BeforeEach
    void start() {
        eventsDb = EmbeddedEventsDb.builder().start();
        pool = TestCluster.pool(eventsDb.dataSource());
        eventSql = EventSql.builder(pool).build();
        eventSql.createStream(StreamSpec.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
    }

    @AfterEach
    void stop() {
        processes.forEach(ChildProcess::close);
        eventSql.close();
        pool.close();
        eventsDb.close();
    }

    private ChildProcess startProcess(boolean rebuilds) throws IOException {
        ChildProcess process = new ChildProcess(
                folder,
                AggregateProcess.class,
                List.of(
                        eventsDb.jdbcUrl(),
                        eventsDb.username(),
                        eventsDb.password(),
                        "sums",
                        STREAM,
                        Boolean.toString(rebuilds)));
        processes.add(process);
        process.awaitLine("READY");
        return process;
    }

    private void publish() {
        try {
            eventSql.publisher().publishAll(STREAM, AggregateModel.events(random, 300));
        } catch (EventSqlException e) {
            System.out.println("Stored or not, the model knows: " + e.getMessage());
        }
    }

    @Test
    void kills_ofMembersAndDatabase_everyEventIsCountedOnce() throws Exception {
        publish();
        startProcess(false);
        startProcess(true);
        for (int kill = 0; kill < KILLS; kill++) {
            publish();
            TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MS_MAX)); // a random moment
            if (kill % 3 == 1) {
                eventsDb.crash();
                eventsDb.restart();
            } else {
                processes.remove(random.nextInt(processes.size())).kill();
                startProcess(random.nextInt(3) == 0);
            }
        }
        publish();
        try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(AggregateModel.spec("sums", STREAM))) {
            List<StoredEvent> stored = readAll();
            assertThat(stored).hasSizeGreaterThan(300);
            await().atMost(DEADLINE).ignoreExceptions().until(() -> !aggregate.isRebuilding());
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(
                                    aggregate.windows(Instant.EPOCH, Instant.now(), ContinuousAggregate.WINDOWS_MAX))
                            .isEqualTo(AggregateModel.windows(stored)));
        }
    }

    private List<StoredEvent> readAll() {
        List<StoredEvent> all = new ArrayList<>();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            List<StoredEvent> page;
            long next = 0;
            do {
                page = eventSql.read(new EventPosition(STREAM, 0, partition, next), 10_000);
                all.addAll(page);
                next += page.size();
            } while (!page.isEmpty());
        }
        return all;
    }
}
