package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.load.PublishLoad;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Goal: when PostgreSQL is killed under load several times, publishing and consuming recover without intervention: no
 * acknowledged event is lost, none is stored twice, events of a key keep their order, and a consumer handles every event at
 * least once and in the order of its partition.
 *
 * <p>Method: all processes of a real server get SIGKILL at seeded moments while callers publish in every way and two
 * consumers read; the server is restarted on the same data. The callers' deadline is much longer than the outage, so no call
 * may fail.
 *
 * <p>{@code -Deventsql.test.crashes=N} crashes it N times instead of 2.
 */
class DatabaseCrashIT {
    private static final String STREAM = "crashes";
    private static final int PARTITIONS = 3;
    private static final int CRASHES = Integer.getInteger("eventsql.test.crashes", 2);

    /** The offsets that a consumer handled, per partition, in the order in which it handled them. */
    private static final class Handled {
        private final Map<Integer, List<Long>> offsets = new ConcurrentHashMap<>();
        private final Queue<String> gaps = new ConcurrentLinkedQueue<>();

        /** Called for one partition by one thread at a time. */
        void handle(StoredEvent event) {
            List<Long> before = offsets.computeIfAbsent(event.partition(), partition -> new ArrayList<>());
            long next = before.isEmpty() ? 0 : before.getLast() + 1;
            if (event.offset() > next) {
                gaps.add(event.position() + " was handled after offset " + (next - 1));
            }
            before.add(event.offset());
        }

        long distinct() {
            return offsets.values().stream()
                    .mapToLong(ofPartition -> ofPartition.stream().distinct().count())
                    .sum();
        }
    }

    @Test
    void publishAndConsume_databaseCrashesUnderLoad_bothRecoverAndNothingIsLost() throws Exception {
        Random random = Seeds.random("DatabaseCrashIT");
        Settings settings = Settings.builder()
                .publishTimeout(Duration.ofMinutes(2))
                .networkTimeout(Duration.ofSeconds(5))
                .maxBatchEvents(200)
                .build();
        try (EmbeddedEventsDb eventsDb = EmbeddedEventsDb.builder().start();
                HikariDataSource pool = Pools.pool(eventsDb);
                EventSql eventSql = EventSql.builder(pool).settings(settings).build()) {
            eventSql.createStream(
                    TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
            Handled single = new Handled();
            Handled batch = new Handled();
            Subscription one = eventSql.subscribe(ConsumerSpec.of(STREAM, "single"), single::handle);
            Subscription other = eventSql.subscribeBatch(
                    ConsumerSpec.of(STREAM, "batch").withPageEvents(100), page -> page.forEach(batch::handle));
            Ledger ledger = new Ledger();
            PublishLoad load = new PublishLoad(eventSql.publisher(), STREAM, ledger);
            load.startAll(2, "k", random, 60);

            for (int crash = 0; crash < CRASHES; crash++) {
                long before = ledger.storedCount();
                await().atMost(Duration.ofMinutes(1)).until(() -> ledger.storedCount() > before + 200);
                TimeUnit.MILLISECONDS.sleep(random.nextInt(1_000));
                eventsDb.crash();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(300));
                eventsDb.restart();
            }
            long afterLast = ledger.storedCount();
            await().atMost(Duration.ofMinutes(1)).until(() -> ledger.storedCount() > afterLast + 200);
            load.stop();

            List<Ledger.Stored> stored = Ledger.read(STREAM, List.of(pool));
            System.out.println(ledger);
            ledger.verify(stored);
            assertThat(ledger.storedCount()).as("acknowledged events").isEqualTo(stored.size());
            for (Handled handled : List.of(single, batch)) {
                await().atMost(Duration.ofMinutes(1)).until(() -> handled.distinct() >= stored.size());
                assertThat(handled.gaps).isEmpty();
                assertThat(handled.distinct()).isEqualTo(stored.size());
            }
            assertThat(one.isRunning() && other.isRunning()).isTrue();
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() ->
                            assertThat(eventSql.positions(STREAM, "single")).allMatch(position -> position.lag() == 0));
            Map<Integer, Long> ends =
                    stored.stream().collect(Collectors.groupingBy(Ledger.Stored::partition, Collectors.counting()));
            assertThat(eventSql.positions(STREAM, "batch"))
                    .allMatch(position -> position.head() == ends.getOrDefault(position.partition(), 0L));
        }
    }
}
