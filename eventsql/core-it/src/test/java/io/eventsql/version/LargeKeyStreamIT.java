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
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.SharedServerDatabase;
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
 * Goal: the 100 events of a key are found, one in each of 100 segments or several in each of a few, and the database
 * knows just these segments.
 *
 * <p>{@code -Deventsql.test.keyEvents=100000000} is the long form, with 1,000 segments on a server of its own. Prints lines with
 * {@code MEASURED}: the first read of each key after the server was stopped and its files were dropped from the page cache, then a
 * thousand more. The short form reads ten times and measures nothing.
 */
@Timeout(value = 3, unit = TimeUnit.HOURS)
class LargeKeyStreamIT {
    private static final String STREAM = "orders";
    private static final String LONG_LIVED = "long-lived";
    private static final String SHORT_LIVED = "short-lived";
    private static final long SHORT_RUN_EVENTS = 20_000;
    private static final long EVENTS = Long.getLong("eventsql.test.keyEvents", SHORT_RUN_EVENTS);
    private static final boolean IS_LONG = EVENTS > SHORT_RUN_EVENTS;
    private static final int READS = IS_LONG ? 1_000 : 10;
    private static final long SEGMENT_SIZE = Math.max(200, EVENTS / 1_000);
    private static final long SHORT_LIFE = EVENTS / 100;

    @ParameterizedTest
    @EnumSource
    void readKey_largeStream_readsOnlyTheSegmentsOfTheKey(Storage storage) throws Exception {
        try (EventsDb database = IS_LONG ? EmbeddedEventsDb.builder().start() : SharedServerDatabase.create()) {
            try (HikariDataSource pool = TestCluster.pool(database.dataSource());
                    EventSql eventSql = EventSql.builder(List.of(pool))
                            .settings(Settings.builder().maxBatchEvents(5_000).build())
                            .build()) {
                eventSql.createStream(StreamSpec.of(STREAM)
                        .withPartitions(1)
                        .withSegmentSize(SEGMENT_SIZE)
                        .withStorage(storage)
                        .withKeyIndex());
                fill(eventSql.publisher());
            }
            if (database instanceof EmbeddedEventsDb own) {
                own.stop();
                dropFromPageCache(own.folder());
                own.restart();
            }
            try (HikariDataSource pool = TestCluster.pool(database.dataSource());
                    EventSql eventSql = EventSql.builder(List.of(pool)).build()) {
                assertThat(measure(eventSql, storage, LONG_LIVED, pool)).isEqualTo(100);
                long least = SHORT_LIFE / SEGMENT_SIZE;
                assertThat(measure(eventSql, storage, SHORT_LIVED, pool)).isBetween(least, least + 1);
            }
        }
    }

    /** Each of the other keys has 50 events, all within half a segment. */
    private static void fill(EventPublisher publisher) {
        List<CompletableFuture<?>> inFlight = new ArrayList<>();
        List<Event> batch = new ArrayList<>();
        for (long i = 0; i < EVENTS; i++) {
            batch.add(Event.ofText(key(i), "v" + i));
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

    private static String key(long i) {
        if (i % (EVENTS / 100) == EVENTS / 200) {
            return LONG_LIVED;
        }
        long distance = SHORT_LIFE / 100;
        if (i / SHORT_LIFE == 50 && i % distance == distance / 2) {
            return SHORT_LIVED;
        }
        long lifetime = Math.max(50, EVENTS / 2_000);
        return "k" + (i / lifetime * (lifetime / 50) + i % (lifetime / 50));
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

    /** Returns in how many segments the key has events. */
    private static long measure(EventSql eventSql, Storage storage, String key, HikariDataSource pool)
            throws Exception {
        assertThat(eventSql.keyVersion(STREAM, key)).isEqualTo(100);
        long[] nanos = new long[READS];
        for (int i = 0; i < nanos.length; i++) {
            long startedAt = System.nanoTime();
            var found = eventSql.readKey(STREAM, key);
            nanos[i] = System.nanoTime() - startedAt;
            assertThat(found.events()).hasSize(100);
        }
        double cold = nanos[0] / 1e6;
        Arrays.sort(nanos);
        long segments = Sql.queryLong(
                pool, "SELECT count(*) FROM eventsql.key_segment WHERE key_hash = hashtextextended('" + key + "', 0)");
        System.out.printf(
                "MEASURED readKey, %s: 100 events of %d, in %d of %d segments; cold %.1f ms, p50 %.2f ms, p99 %.2f ms%n",
                storage,
                EVENTS,
                segments,
                Sql.queryLong(pool, "SELECT count(*) FROM eventsql.segment"),
                cold,
                nanos[nanos.length / 2] / 1e6,
                nanos[nanos.length * 99 / 100] / 1e6);
        return segments;
    }
}
