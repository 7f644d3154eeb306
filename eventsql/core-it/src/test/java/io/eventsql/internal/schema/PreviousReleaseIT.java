package io.eventsql.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.ParkedEvent;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.MigrationFiles;
import io.eventsql.fixture.PreviousRelease;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a schema of the previous release migrates with everything in it and continues, and processes of that release work
 * next to this one while it is deployed. Method: the SQL files of that release, which never change, create the schema; its
 * functions, called with their signatures, write the data.
 */
@Timeout(120)
class PreviousReleaseIT {
    private static final long SEGMENT_SIZE = 100;
    private static final StreamSpec STREAM = StreamSpec.of("orders")
            .withPartitions(2)
            .withSegmentSize(SEGMENT_SIZE)
            .asJson();

    private HikariDataSource pool;
    private PreviousRelease previous;

    @BeforeEach
    void createSchema() throws SQLException {
        pool = TestCluster.pool(TestCluster.newDatabase());
        PreviousRelease.createSchema(pool);
        previous = PreviousRelease.createStream(pool, "orders", 2, SEGMENT_SIZE);
    }

    /** Replaces the database by one of this release, in which the previous one creates the stream. */
    private void useMigratedSchema() throws SQLException {
        pool.close();
        pool = TestCluster.pool(TestCluster.newDatabaseWithTables());
        previous = PreviousRelease.createStream(pool, "orders", 2, SEGMENT_SIZE);
    }

    @AfterEach
    void closePool() {
        pool.close();
    }

    private EventSql open() {
        return EventSql.builder(pool).build();
    }

    private static List<String> values(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> "{\"n\": " + i + "}").toList();
    }

    private static List<Event> events(int from, int to) {
        return values(from, to).stream().map(text -> Event.ofText("k", text)).toList();
    }

    private static List<String> texts(List<StoredEvent> events) {
        return events.stream().map(StoredEvent::text).toList();
    }

    private List<String> segments(int partition) throws SQLException {
        return Sql.query(
                pool,
                "SELECT first_offset || '-' || end_offset || ' ' || table_name FROM eventsql.segment"
                        + " WHERE partition = ? ORDER BY first_offset",
                partition);
    }

    private List<String> appendFunctions() throws SQLException {
        return Sql.query(pool, "SELECT proname FROM pg_proc WHERE proname ~ '^append_v2_' ORDER BY 1");
    }

    /** The segments in the catalog are exactly the tables. */
    private void assertCatalogComplete() throws SQLException {
        assertThat(Sql.query(pool, "SELECT table_name FROM eventsql.segment"))
                .containsExactlyInAnyOrderElementsOf(Sql.query(
                        pool,
                        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                                + " WHERE c.relkind = 'r' AND c.relname LIKE 'events\\_%'"));
    }

    @Test
    void migrate_schemaWithEventsConsumersOutboxAndParkedEvents_continues() throws Exception {
        for (int from = 0; from < 250; from += 50) {
            previous.append(0, values(from, from + 50));
        }
        previous.append(1, values(1_000, 1_030));
        Sql.execute(
                pool,
                "INSERT INTO eventsql.consumer (stream_id, name) SELECT stream_id, 'c' FROM eventsql.stream",
                "INSERT INTO eventsql.consumer_partition (consumer_id, partition) VALUES (1, 0), (1, 1)",
                "INSERT INTO eventsql.consumer_offset VALUES (1, 0, 7, 120, 3, 120, now()), (1, 1, 0, 0, 0, 0, now())",
                "INSERT INTO eventsql.parked_key (consumer_id, partition, key) VALUES (1, 0, 'parked')",
                "INSERT INTO eventsql.parked_event (consumer_id, partition, event_offset, key, value, published_at, error,"
                        + " attempts) VALUES (1, 0, 5, 'parked', '{}', now(), 'failed', 3)",
                "INSERT INTO eventsql.outbox (ring, stream, key, value, routing_hash)"
                        + " SELECT last_value, 'orders', NULL, '{\"from\": \"outbox\"}', 5"
                        + " FROM eventsql.outbox_ring, generate_series(1, 20)");

        try (EventSql eventSql = open()) {
            assertThat(eventSql.streams()).containsExactly(STREAM);
            assertThat(appendFunctions()).containsExactly("append_v2_1");
            assertThat(texts(eventSql.read(new EventPosition("orders", 0, 0, 0), 1_000))
                            .subList(0, 250))
                    .isEqualTo(values(0, 250));
            Handled handled = new Handled();
            try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
                handled.awaitSize(130 + 30 + 20);
                eventSql.publisher().publishAll("orders", events(2_000, 2_300));
                handled.awaitSize(130 + 30 + 20 + 300).assertOnceAndInOrder();
            }
            assertThat(handled.texts())
                    .containsAll(values(120, 250))
                    .containsAll(values(1_000, 1_030))
                    .containsAll(values(2_000, 2_300))
                    .doesNotContainAnyElementsOf(values(0, 120));
            assertThat(handled.texts().stream().filter(text -> text.contains("outbox")))
                    .hasSize(20);
            assertThat(eventSql.consumer("orders", "c").parkedEvents(10))
                    .extracting(ParkedEvent::error)
                    .containsExactly("failed");
            assertThat(Sql.queryLong(
                            pool, "SELECT count(*) FROM eventsql.events_orders__json WHERE value -> 'n' IS NOT NULL"))
                    .isEqualTo(580);
            assertCatalogComplete();

            eventSql.clear("orders", eventSql.previewClear("orders").confirmation());
            assertThat(Sql.queryLong(pool, "SELECT count(*) FROM eventsql.events_orders"))
                    .isZero();
            assertCatalogComplete();
            eventSql.publisher().publishAll("orders", events(3_000, 3_010));
        }
    }

    /**
     * Goal: a long reader of a stream, such as a report, delays the migration but stops no publisher. Method: the reader's
     * transaction stays open until publishers of the previous release have appended next to the migration that waits.
     */
    @Test
    void migrate_longReader_publishersContinueAndItCompletesAfterwards() throws Exception {
        try (Connection reader = pool.getConnection();
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_orders");
            Future<EventSql> opened = executor.submit(this::open);
            await().untilAsserted(() -> assertThat(Sql.queryLong(
                            pool,
                            "SELECT count(*) FROM pg_locks WHERE relation = 'eventsql.events_orders'::regclass"
                                    + " AND mode = 'AccessExclusiveLock' AND NOT granted"))
                    .isPositive());
            for (int from = 0; from < 100; from += 50) {
                previous.append(0, values(from, from + 50)); // waits until the migration's lock times out
            }
            assertThat(opened).isNotDone();
            reader.rollback();
            try (EventSql eventSql = opened.get(120, TimeUnit.SECONDS)) {
                assertThat(texts(eventSql.read(new EventPosition("orders", 0, 0, 0), 1_000)))
                        .isEqualTo(values(0, 100));
            }
        }
    }

    @Test
    void previousRelease_publishesAndReadsNextToThisOne() throws Exception {
        previous.append(0, values(0, 30));
        try (EventSql eventSql = open();
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            Future<Void> published = executor.submit(() -> {
                for (int from = 30; from < 1_030; from += 50) {
                    previous.append(0, values(from, from + 50));
                }
                return null;
            });
            for (int i = 0; i < 20; i++) {
                eventSql.publisher().publishAll("orders", events(5_000 + 50 * i, 5_050 + 50 * i));
            }
            published.get(120, TimeUnit.SECONDS);

            List<String> all = new ArrayList<>(previous.read(0, 0));
            all.addAll(previous.read(1, 0));
            List<String> expected = new ArrayList<>(values(0, 1_030));
            expected.addAll(values(5_000, 6_000));
            assertThat(all).containsExactlyInAnyOrderElementsOf(expected);
            Handled handled = new Handled();
            try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
                handled.awaitSize(expected.size()).assertOnceAndInOrder();
            }
            assertCatalogComplete();
        }
    }

    /** Goal: a stream that the previous release creates in this schema is published to by the functions of both. */
    @Test
    void previousRelease_createsStream_itHasAnAppendFunction() throws Exception {
        useMigratedSchema();
        try (EventSql eventSql = open()) {
            PreviousRelease later = PreviousRelease.createStream(pool, "later", 1, SEGMENT_SIZE);
            assertThat(appendFunctions()).containsExactly("append_v2_1", "append_v2_2");
            for (int i = 0; i < 5; i++) {
                later.append(0, values(100 * i, 100 * i + 50));
                eventSql.publisher().publishAll("later", events(100 * i + 50, 100 * i + 100));
            }
            assertThat(later.read(0, 0)).isEqualTo(values(0, 500));
        }
    }

    /**
     * Goal: while a key is erased, processes of the previous release continue to publish and read; they read erased events with
     * an empty value. Method: that release's functions are called before, next to and after the erasure.
     */
    @Test
    void previousRelease_publishesAndReadsNextToAnErasure() throws Exception {
        for (int from = 0; from < 250; from += 50) {
            previous.append(0, values(from, from + 50));
        }
        try (EventSql eventSql = open();
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            eventSql.publisher().publishAll("orders", List.of(Event.ofText("other", "{\"n\": -1}")));
            Future<Void> published = executor.submit(() -> {
                for (int from = 250; from < 1_250; from += 50) {
                    previous.append(0, values(from, from + 50));
                }
                return null;
            });
            Erasure erasure = eventSql.erase(ErasureSpec.of("orders", "k").withStepEvents(30));
            published.get(120, TimeUnit.SECONDS);

            assertThat(erasure.isDone()).as("%s", erasure).isTrue();
            assertThat(erasure.erasedEvents()).isGreaterThanOrEqualTo(250);
            List<String> all = new ArrayList<>(previous.read(0, 0));
            all.addAll(previous.read(1, 0));
            assertThat(all).hasSize(1_251).contains("{\"n\": -1}").doesNotContainAnyElementsOf(values(0, 250));
            assertThat(all.stream().filter(String::isEmpty)).hasSize((int) erasure.erasedEvents());
        }
    }

    /** A sender of the previous release sends what was blanked as empty values, which the erasure then finds in the stream. */
    @Test
    void previousRelease_sendsBlankEvents_theErasureFindsThem() throws Exception {
        useMigratedSchema();
        try (EventSql eventSql = open()) {
            Sql.query(
                    pool,
                    "SELECT eventsql.append_transferred_v1(gen_random_uuid(), 1, NULL, 0, ARRAY['orders'], ARRAY[1], ARRAY[0],"
                            + " ARRAY[2], ARRAY[NULL]::bigint[], ARRAY[2]::bigint[], ARRAY['k', 'other'],"
                            + " ARRAY['', 'x']::bytea[], ARRAY[NULL, NULL]::text[])");
            assertThat(eventSql.erase("orders", "k").erasedEvents()).isEqualTo(1);
            assertThat(eventSql.read(new EventPosition("orders", 0, 0, 0), 10))
                    .extracting(StoredEvent::isErased)
                    .containsExactly(true, false);
        }
    }

    /**
     * Goal: segments that this release has sized otherwise do not stop a publisher of the previous one, which expects each
     * segment at a multiple of the stream's segment size.
     */
    @Test
    void previousRelease_segmentsOfOtherSizes_publishesAndReads() throws Exception {
        PreviousRelease big = PreviousRelease.createStream(pool, "big", 1, 5_000);
        for (int from = 0; from < 5_100; from += 850) {
            big.append(0, values(from, from + 850));
        }
        try (EventSql eventSql = open()) {
            Sql.execute(
                    pool,
                    "UPDATE eventsql.events_big SET published_at = now() - interval '3 days'",
                    "UPDATE eventsql.stream SET retention = '8 days' WHERE name = 'big'",
                    "SELECT eventsql.ensure_segments_v1(NULL, stream_id, 0, 20000) FROM eventsql.stream WHERE name = 'big'");
            assertThat(Sql.query(
                            pool,
                            "SELECT end_offset - first_offset FROM eventsql.segment JOIN eventsql.stream USING (stream_id)"
                                    + " WHERE name = 'big' AND first_offset >= 15000"))
                    .hasSizeBetween(6, 8)
                    .allSatisfy(size -> assertThat(Long.parseLong(size)).isBetween(1_600L, 1_700L));

            for (int from = 5_100; from < 20_100; from += 1_000) {
                big.append(0, values(from, from + 1_000));
            }

            assertThat(big.read(0, 0)).isEqualTo(values(0, 20_100));
            assertThat(texts(eventSql.read(new EventPosition("big", 0, 0, 12_000), 10_000)))
                    .isEqualTo(values(12_000, 20_100));
            assertCatalogComplete();
        }
    }

    /**
     * Goal: events in a segment that a process of the previous release attaches while the schema is migrated are read, and the
     * catalog gets the segment. Method: the function's former body is called after the migration, under another name.
     */
    @Test
    void previousRelease_attachesSegmentDuringTheMigration_itsEventsAreReadAndItIsAdopted() throws Exception {
        String file = MigrationFiles.read("shard/V7__maintenance_functions.sql");
        int begin = file.indexOf("CREATE FUNCTION eventsql.add_segment_v1");
        String former = file.substring(begin, file.indexOf("END $$;", begin) + "END $$;".length());
        try (EventSql eventSql = open()) {
            Sql.execute(pool, former.replace("add_segment_v1", "former_add_segment"));
            Sql.query(pool, "SELECT eventsql.former_add_segment(NULL, 1, 0, 2)");
            assertThat(segments(0)).hasSize(2);

            previous.append(0, values(0, 230));

            assertThat(texts(eventSql.read(new EventPosition("orders", 0, 0, 0), 1_000)))
                    .isEqualTo(values(0, 230));
            Sql.query(pool, "SELECT eventsql.ensure_segments_v1(NULL, 1, 0, 1)");
            assertThat(segments(0)).contains("200-300 events_orders__p0_s2");
            assertCatalogComplete();
            assertThat(previous.read(0, 0)).isEqualTo(values(0, 230));
        }
    }
}
