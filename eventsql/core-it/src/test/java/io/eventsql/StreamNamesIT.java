package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.DocumentedSql;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Names of streams that are no SQL identifiers, on two shards. */
@Timeout(120)
class StreamNamesIT {
    private static TestCluster cluster;
    private static EventSql eventSql;

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(2);
        eventSql = cluster.open();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private static List<Event> events(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("k" + i % 20, "{\"n\": " + i + "}"))
                .toList();
    }

    static List<String> names() {
        return List.of(
                "order-service",
                "order.service",
                "Order-Service",
                "a__p0",
                "a__json",
                "1",
                "events",
                "x.".repeat(49) + "-_",
                "A".repeat(StreamSpec.NAME_LENGTH_MAX));
    }

    @ParameterizedTest
    @MethodSource("names")
    void stream_anyName_isPublishedConsumedQueriedAndCleared(String name) throws SQLException {
        StreamSpec spec =
                StreamSpec.of(name).withPartitions(2).withSegmentSize(100).asJson();
        eventSql.createStream(spec);
        assertThat(eventSql.streams()).contains(spec);
        for (DataSource database : cluster.dataSources()) {
            assertThat(Sql.query(database, "SELECT table_name FROM eventsql.stream WHERE name = ?", name))
                    .containsExactly(spec.tableName());
            assertThat(Sql.query(database, "SELECT eventsql.stream_table_name_v1(?)", name))
                    .containsExactly(spec.tableName());
        }

        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(name, "c"), handled::add)) {
            eventSql.publisher().publishAll(name, events(0, 450));
            handled.awaitSize(450).assertOnceAndInOrder();
            await().untilAsserted(
                            () -> assertThat(eventSql.positions(name, "c")).allMatch(p -> p.lag() == 0));
        }
        assertThat(eventSql.consumer(name, "c").state()).hasSize(4);
        assertThat(cluster.sum("SELECT count(*) FROM eventsql." + spec.tableName()))
                .isEqualTo(450);
        assertThat(cluster.sum(
                        "SELECT count(*) FROM eventsql." + spec.tableName() + "__json WHERE value -> 'n' IS NOT NULL"))
                .isEqualTo(450);
        cluster.execute("SELECT eventsql.apply_stream_grants_v1('" + name + "')");

        assertThat(eventSql.clear(name, eventSql.previewClear(name).confirmation()))
                .isEqualTo(450);
        assertThat(cluster.sum("SELECT count(*) FROM eventsql." + spec.tableName()))
                .isZero();
        eventSql.publisher().publishAll(name, events(0, 10));
    }

    @Test
    void deadLetters_streamNamesWithDots_areStoredAndRedriven() {
        String name = "shop.payments.v1";
        String deadLetters = "shop.payments.v1.dead-letters";
        eventSql.createStream(StreamSpec.of(name).withPartitions(1));
        eventSql.createStream(StreamSpec.of(deadLetters).withPartitions(1));
        Handled handled = new Handled();
        Handled dead = new Handled();
        ConsumerSpec spec = ConsumerSpec.of(name, "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream(deadLetters);
        try (Subscription ignored = eventSql.subscribe(spec, event -> {
                    if (event.text().equals("bad")) {
                        throw new IllegalStateException("rejected");
                    }
                    handled.add(event);
                });
                Subscription alsoIgnored = eventSql.subscribe(ConsumerSpec.of(deadLetters, "c"), dead::add)) {
            eventSql.publisher().publish(name, Event.ofText("k", "bad"));
            eventSql.publisher().publish(name, Event.ofText("k", "good"));
            handled.awaitSize(1);
            dead.awaitSize(1);
        }
        assertThat(dead.texts()).containsExactly("bad");
        assertThat(eventSql.consumer(name, "c").parkedEvents(10))
                .hasSize(1)
                .allSatisfy(parked -> assertThat(parked.isDeadLettered()).isTrue());
    }

    /** Another version of the C library may order text in another way. docs/operating.md says which indexes are then created anew. */
    @Test
    void indexes_thatTheCollationOrders_areThoseOfNames() throws Exception {
        List<StreamSpec> specs = List.of(
                TestStreams.of(TestStreams.newName()).withCompaction(Compaction.DEFAULT),
                TestStreams.of(TestStreams.newName())
                        .withStorage(Storage.BLOCKS)
                        .withCompaction(Compaction.DEFAULT),
                TestStreams.of(TestStreams.newName()).withKeyVersions());
        for (StreamSpec spec : specs) {
            eventSql.createStream(spec);
            eventSql.publisher().publishAll(spec.name(), events(0, 10));
        }
        for (DataSource database : cluster.dataSources()) {
            assertThat(Sql.query(database, """
                            SELECT DISTINCT c.relname || '.' || a.attname
                            FROM pg_index i
                            JOIN pg_class c ON c.oid = i.indrelid
                            JOIN pg_attribute a ON a.attrelid = i.indexrelid
                            WHERE c.relnamespace = 'eventsql'::regnamespace
                              AND i.indcollation[a.attnum - 1] = 'pg_catalog."default"'::regcollation"""))
                    .containsExactlyInAnyOrder(
                            "consumer.name",
                            "deleted_stream.name",
                            "erasure_file.table_name",
                            "replaced_table.table_name",
                            "replicated_incarnation.incarnation",
                            "segment.table_name",
                            "stationary_stream.stream",
                            "stream.name",
                            "stream.table_name");
            String select = DocumentedSql.block("operating.md", "REINDEX INDEX").replaceFirst("(?s)\\\\gexec.*", "");
            List<String> statements = Sql.query(database, select);
            assertThat(statements).hasSize(9);
            Sql.execute(database, statements.toArray(String[]::new));
        }
    }

    @Test
    void outbox_streamNameWithHyphen_isRelayed() throws Exception {
        String name = "billing-service";
        eventSql.createStream(StreamSpec.of(name).withPartitions(1));
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(name, "c"), handled::add);
                var connection = cluster.dataSources().getFirst().getConnection()) {
            connection.setAutoCommit(false);
            eventSql.outbox().publish(connection, name, Event.ofText("k", "x"));
            connection.commit();
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(handled.texts()).containsExactly("x"));
        }
    }
}
