package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyEvents;
import io.eventsql.Retention;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: the events of a key are read completely and in order, whatever the number of segments, and only the segments that have
 * some are touched.
 *
 * <p>{@code -Deventsql.test.keyEvents=100000000} is the long form of the large stream: 1,000 segments of a thousandth of that, and
 * a key with 100 events. Prints lines with {@code MEASURED}.
 */
@Timeout(value = 3, unit = java.util.concurrent.TimeUnit.HOURS)
class KeyEventsIT {
    private static final String STREAM = "orders";
    private static final long LARGE_EVENTS = Long.getLong("eventsql.test.keyEvents", 5_000);

    private TestCluster cluster;
    private EventSql eventSql;
    private EventPublisher publisher;

    private void open(int shards, StreamSpec spec) {
        cluster = TestCluster.ofShards(shards);
        eventSql = cluster.open(settings -> settings.maxBatchEvents(5_000));
        eventSql.createStream(spec);
        publisher = eventSql.publisher();
    }

    private static StreamSpec indexed() {
        return StreamSpec.of(STREAM).withPartitions(2).withSegmentSize(100).withKeyIndex();
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private Map<String, List<String>> publishRandom(Random random, int events, int keys) {
        Map<String, List<String>> published = new HashMap<>();
        for (int from = 0; from < events; from += 50) {
            List<Event> batch = new ArrayList<>();
            for (int i = from; i < from + 50; i++) {
                int key = (int) Math.abs(random.nextGaussian() * keys / 3); // some often, some never again
                batch.add(Event.ofText("k" + key, "v" + i).withHeader("n", "" + i));
                published.computeIfAbsent("k" + key, k -> new ArrayList<>()).add("v" + i);
            }
            batch.add(Event.ofText("without a key"));
            publisher.publishAll(STREAM, batch);
        }
        return published;
    }

    private static List<String> texts(KeyEvents events) {
        return events.events().stream().map(StoredEvent::text).toList();
    }

    @Test
    void readKey_manySegments_returnsAllEventsOfKeyInOrder() {
        open(3, indexed());
        Map<String, List<String>> published = publishRandom(Seeds.random("KeyEventsIT"), 1_500, 100);
        published.forEach((key, values) -> {
            KeyEvents found = eventSql.readKey(STREAM, key);
            assertThat(texts(found)).isEqualTo(values);
            assertThat(found.version()).isEqualTo(values.size());
            assertThat(found.next()).isEmpty();
            StoredEvent last = found.events().getLast();
            assertThat(eventSql.read(last.position(), 1)).containsExactly(last);
            assertThat(last.headers()).isEqualTo(Map.of("n", values.getLast().substring(1)));
        });
        KeyEvents none = eventSql.readKey(STREAM, "never published");
        assertThat(none.events()).isEmpty();
        assertThat(none.version()).isZero();
    }

    @Test
    void readKey_inPages_continuesWhereThePageEnded() {
        open(1, indexed());
        List<String> values =
                publishRandom(Seeds.random("KeyEventsIT.pages"), 2_000, 5).get("k0");
        for (int max : new int[] {1, 7, 1_000}) {
            List<String> read = new ArrayList<>();
            KeyEvents page = eventSql.readKey(STREAM, "k0", max);
            read.addAll(texts(page));
            while (page.next().isPresent()) {
                assertThat(page.events()).hasSize(max);
                page = eventSql.readKey(STREAM, "k0", page.next().orElseThrow(), max);
                read.addAll(texts(page));
            }
            assertThat(read).isEqualTo(values);
        }
    }

    @Test
    void readKey_segmentsExpired_returnsTheEventsThatAreLeft() throws Exception {
        open(1, indexed().withPartitions(1).withRetention(Retention.FOREVER.withMaxEvents(500)));
        List<String> values =
                publishRandom(Seeds.random("KeyEventsIT.expired"), 1_500, 3).get("k0");
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            cluster.execute("SELECT eventsql.expire_v1()");
            return texts(eventSql.readKey(STREAM, "k0")).size() < values.size();
        });
        KeyEvents found = eventSql.readKey(STREAM, "k0");
        assertThat(values.subList(values.size() - found.events().size(), values.size()))
                .isEqualTo(texts(found));
        assertThat(found.version()).isEqualTo(values.size());
    }

    @Test
    void readKey_compacted_segmentsThatWereMergedAreReadOnce() throws Exception {
        open(1, indexed().withPartitions(1).withCompaction(new Compaction(Duration.ofSeconds(1))));
        Map<String, List<String>> published = publishRandom(Seeds.random("KeyEventsIT.compacted"), 3_000, 20);
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            cluster.execute("SELECT eventsql.compact_v1()");
            return cluster.sum("SELECT count(*) FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                            + " WHERE g.end_offset - g.first_offset > s.segment_size")
                    > 0;
        });
        published.forEach((key, values) -> {
            List<String> found = texts(eventSql.readKey(STREAM, key));
            assertThat(found).doesNotHaveDuplicates();
            assertThat(found.getLast()).isEqualTo(values.getLast());
            assertThat(eventSql.keyVersion(STREAM, key)).isEqualTo(values.size());
        });
    }

    @Test
    void readKey_withoutIndex_isRefused() {
        open(1, indexed());
        eventSql.createStream(StreamSpec.of("counted").withKeyVersions());
        assertThatExceptionOfType(InvalidInputException.class).isThrownBy(() -> eventSql.readKey("counted", "a"));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() ->
                        StreamSpec.of("blocks").withStorage(Storage.BLOCKS).withKeyIndex())
                .satisfies(e -> assertThat(e.field()).isEqualTo("stream.storage"));
    }

    /** A session keeps the plans that it made when the stream had no keys. */
    @Test
    void append_streamHasManyKeys_readsTheRowsOfItsOwnOnly() throws Exception {
        open(1, StreamSpec.of(STREAM).withPartitions(1).withKeyVersions());
        String counting = "SELECT eventsql.raise_key_versions_v1("
                + "(SELECT stream_id FROM eventsql.stream WHERE name = 'orders'), array_fill(0, ARRAY[20]),"
                + " ARRAY(SELECT 'k' || n FROM generate_series(%1$d, %1$d + 19) AS n), array_fill(1, ARRAY[20]))";
        try (Connection connection = cluster.dataSources().getFirst().getConnection();
                Statement statement = connection.createStatement()) {
            for (String scan : List.of("seqscan", "bitmapscan", "sort")) {
                statement.execute("SET enable_%s = off".formatted(scan)); // as the append function does
            }
            statement.execute("SET plan_cache_mode = force_generic_plan");
            statement.execute(counting.formatted(1));
            cluster.execute("INSERT INTO eventsql.key_version (stream_id, partition, key, version)"
                    + " SELECT stream_id, 0, 'other' || n, 1 FROM eventsql.stream, generate_series(1, 20000) AS n"
                    + " WHERE name = 'orders'");
            connection.setAutoCommit(false);
            statement.execute(counting.formatted(11)); // half of the keys are new
            try (ResultSet rows = statement.executeQuery("SELECT seq_tup_read + idx_tup_fetch"
                    + " FROM pg_stat_xact_user_tables WHERE relname = 'key_version'")) {
                assertThat(rows.next()).isTrue();
                assertThat(rows.getLong(1)).isBetween(20L, 100L);
            }
            connection.commit();
        }
        assertThat(cluster.sum("SELECT sum(version) FROM eventsql.key_version WHERE key LIKE 'k%'"))
                .isEqualTo(40);
    }

    /** One key has 100 events among all the others, spread over the stream. */
    @Test
    void readKey_largeStream_readsOnlyTheSegmentsOfTheKey() throws Exception {
        open(
                1,
                StreamSpec.of(STREAM)
                        .withPartitions(1)
                        .withSegmentSize(Math.max(100, LARGE_EVENTS / 1_000))
                        .withKeyIndex());
        long every = LARGE_EVENTS / 100;
        long lifetime = Math.max(50, LARGE_EVENTS / 2_000); // in which each of the other keys has its 50 events
        List<CompletableFuture<?>> inFlight = new ArrayList<>();
        List<Event> batch = new ArrayList<>();
        for (long i = 0; i < LARGE_EVENTS; i++) {
            boolean isOfKey = i % every == every / 2;
            long other = i / lifetime * (lifetime / 50) + i % (lifetime / 50);
            batch.add(Event.ofText(isOfKey ? "the key" : "k" + other, "v" + i));
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

        long[] nanos = new long[1_000];
        for (int i = 0; i < nanos.length; i++) {
            long startedAt = System.nanoTime();
            KeyEvents found = eventSql.readKey(STREAM, "the key");
            nanos[i] = System.nanoTime() - startedAt;
            assertThat(found.events()).hasSize(100);
        }
        double cold = nanos[0] / 1e6;
        Arrays.sort(nanos);
        System.out.printf(
                "MEASURED readKey: 100 events of %d in %d segments; first %.1f ms, p50 %.2f ms, p99 %.2f ms%n",
                LARGE_EVENTS,
                cluster.sum("SELECT count(*) FROM eventsql.segment"),
                cold,
                nanos[nanos.length / 2] / 1e6,
                nanos[nanos.length * 99 / 100] / 1e6);
        assertThat(cluster.sum(
                        "SELECT count(*) FROM eventsql.key_segment WHERE key_hash = hashtextextended('the key', 0)"))
                .isBetween(50L, 100L);
    }
}
