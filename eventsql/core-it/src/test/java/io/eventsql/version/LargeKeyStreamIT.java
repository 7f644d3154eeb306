package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: the 100 events of a key are found, each in another one of many segments, and the database knows just these segments.
 *
 * <p>{@code -Deventsql.test.keyEvents=100000000} is the long form, with 1,000 segments. Prints a line with {@code MEASURED}: the first read after the
 * server was stopped and its files were dropped from the page cache, then a thousand more.
 */
@Timeout(value = 3, unit = TimeUnit.HOURS)
class LargeKeyStreamIT {
    private static final String STREAM = "orders";
    private static final String KEY = "the key";
    private static final long EVENTS = Long.getLong("eventsql.test.keyEvents", 20_000);

    @ParameterizedTest
    @EnumSource
    void readKey_largeStream_readsOnlyTheSegmentsOfTheKey(Storage storage) throws Exception {
        try (EmbeddedEventsDb database = EmbeddedEventsDb.builder().start()) {
            try (HikariDataSource pool = TestCluster.pool(database.dataSource());
                    EventSql eventSql = EventSql.builder(List.of(pool))
                            .settings(Settings.builder().maxBatchEvents(5_000).build())
                            .build()) {
                eventSql.createStream(StreamSpec.of(STREAM)
                        .withPartitions(1)
                        .withSegmentSize(Math.max(100, EVENTS / 1_000))
                        .withStorage(storage)
                        .withKeyIndex());
                fill(eventSql.publisher());
            }
            database.stop();
            dropFromPageCache(database.folder());
            database.restart();
            try (HikariDataSource pool = TestCluster.pool(database.dataSource());
                    EventSql eventSql = EventSql.builder(List.of(pool)).build()) {
                assertThat(eventSql.keyVersion(STREAM, KEY)).isEqualTo(100);
                measure(eventSql, storage, pool);
                assertThat(
                                Sql.queryLong(
                                        pool,
                                        "SELECT count(*) FROM eventsql.key_segment WHERE key_hash = hashtextextended('the key', 0)"))
                        .isEqualTo(100);
            }
        }
    }

    /** Each of the other keys has 50 events, all within half a segment, as aggregates have a lifetime. */
    private static void fill(EventPublisher publisher) {
        long every = EVENTS / 100;
        long lifetime = Math.max(50, EVENTS / 2_000);
        List<CompletableFuture<?>> inFlight = new ArrayList<>();
        List<Event> batch = new ArrayList<>();
        for (long i = 0; i < EVENTS; i++) {
            boolean isOfKey = i % every == every / 2;
            long other = i / lifetime * (lifetime / 50) + i % (lifetime / 50);
            batch.add(Event.ofText(isOfKey ? KEY : "k" + other, "v" + i));
            if (batch.size() == 1_000) {
                inFlight.add(publisher.publishAllAsync(STREAM, batch));
                batch = new ArrayList<>();
            }
            if (inFlight.size() == 10) {
                inFlight.forEach(CompletableFuture::join);
                inFlight.clear();
            }
        }
        inFlight.forEach(CompletableFuture::join);
    }

    private static void dropFromPageCache(Path folder) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(
                        "find",
                        folder.toString(),
                        "-type",
                        "f",
                        "-exec",
                        "dd",
                        "if={}",
                        "iflag=nocache",
                        "count=0",
                        "of=/dev/null",
                        "status=none",
                        ";")
                .inheritIO()
                .start();
        assertThat(process.waitFor()).isZero();
    }

    private static void measure(EventSql eventSql, Storage storage, HikariDataSource pool) throws Exception {
        long[] nanos = new long[1_000];
        for (int i = 0; i < nanos.length; i++) {
            long startedAt = System.nanoTime();
            var found = eventSql.readKey(STREAM, KEY);
            nanos[i] = System.nanoTime() - startedAt;
            assertThat(found.events()).hasSize(100);
        }
        double cold = nanos[0] / 1e6;
        Arrays.sort(nanos);
        System.out.printf(
                "MEASURED readKey, %s: 100 events of %d in %d segments; cold %.1f ms, p50 %.2f ms, p99 %.2f ms%n",
                storage,
                EVENTS,
                Sql.queryLong(pool, "SELECT count(*) FROM eventsql.segment"),
                cold,
                nanos[nanos.length / 2] / 1e6,
                nanos[nanos.length * 99 / 100] / 1e6);
    }
}
