package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.flink.FlinkFixture;
import io.eventsql.flink.sink.KeyRoutes.Target;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.PGConnection;

/** Batches on real databases: which are stored, and which are known to be. */
@Timeout(120)
class BatchAppenderIT {
    private static final UUID PRODUCER = UUID.randomUUID();

    private static FlinkFixture fixture;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    private static SinkSettings settings(String stream, DeliveryGuarantee guarantee) {
        List<String> inAnyOrder = new ArrayList<>(fixture.urls());
        Collections.reverse(inAnyOrder);
        return SinkFixture.settings(
                inAnyOrder,
                FlinkFixture.server().username(),
                FlinkFixture.server().password(),
                stream,
                guarantee,
                Duration.ofSeconds(30));
    }

    private static BatchAppender appender(String stream) {
        return new BatchAppender(settings(stream, DeliveryGuarantee.EXACTLY_ONCE));
    }

    private static EventBatch batch(String stream, UUID producer, long number, Target target, String... values) {
        return new EventBatch(
                producer,
                number,
                stream,
                target,
                1,
                List.of(values).stream()
                        .map(value -> new EncodedEvent("k", value.getBytes(StandardCharsets.UTF_8), "{\"h\":\"1\"}"))
                        .toList());
    }

    private static List<String> values(String stream) {
        return fixture.query("SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream
                + " ORDER BY partition, event_offset");
    }

    @Test
    void append_anyOrderAndAgain_storesEachBatchOnceInTheOrderOfNumbers() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("numbers").withPartitions(1));
        Target target = new Target(1, 0);
        List<EventBatch> batches = List.of(
                batch("numbers", PRODUCER, 2, target, "c"),
                batch("numbers", PRODUCER, 1, target, "a", "b"),
                batch("numbers", PRODUCER, 3, target, "d"));
        for (int attempt = 0; attempt < 2; attempt++) {
            try (BatchAppender appender = appender("numbers")) {
                appender.append(batches);
                appender.append(batches.subList(1, 2));
            }
        }
        assertThat(values("numbers")).containsExactly("a", "b", "c", "d");
        try (BatchAppender appender = appender("numbers")) {
            assertThatIOException()
                    .isThrownBy(() -> appender.append(List.of(batch("numbers", PRODUCER, 5, target, "f"))))
                    .withMessageContaining("batch 5 of sink sink of numbers does not follow batch 3");
        }
        assertThat(values("numbers")).hasSize(4);
    }

    @Test
    void cleanup_keepsTheNumbersOfASink_untilItIsDeleted() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("kept").withPartitions(1));
        Target target = new Target(0, 0);
        UUID forgotten = UUID.randomUUID();
        UUID kept = UUID.randomUUID();
        try (BatchAppender atLeastOnce = new BatchAppender(settings("kept", DeliveryGuarantee.AT_LEAST_ONCE));
                BatchAppender exactlyOnce = appender("kept")) {
            atLeastOnce.append(List.of(batch("kept", forgotten, 1, target, "a")));
            exactlyOnce.append(List.of(batch("kept", kept, 1, target, "b")));
            exactlyOnce.append(List.of(batch("kept", UUID.randomUUID(), 1, target, "head")));
        }
        fixture.query("UPDATE eventsql.producer_batch SET published_at = published_at - interval '2 days'");
        String known = "SELECT count(*) FROM eventsql.producer_batch WHERE producer_id = '%s'";
        fixture.query("SELECT eventsql.delete_dead_producers_v1(gen_random_uuid())");
        assertThat(fixture.query(known.formatted(forgotten))).containsExactly("0", "0");
        assertThat(fixture.query(known.formatted(kept))).containsExactlyInAnyOrder("0", "1");

        assertThat(fixture.query("SELECT eventsql.delete_sink_v1('sink of kept')"))
                .containsExactlyInAnyOrder("0", "2");
        fixture.query("SELECT eventsql.delete_dead_producers_v1(gen_random_uuid())");
        assertThat(fixture.query(known.formatted(kept))).containsExactly("0", "0");
    }

    @Test
    void append_segmentsAreMissing_addsThem() throws Exception {
        for (Storage storage : Storage.values()) {
            String stream = "long_" + storage.name().toLowerCase(java.util.Locale.ROOT);
            fixture.eventSql.createStream(
                    StreamSpec.of(stream).withPartitions(1).withSegmentSize(100).withStorage(storage));
            String[] values = IntStream.range(0, 1_000).mapToObj(n -> "" + n).toArray(String[]::new);
            try (BatchAppender appender = appender(stream)) {
                appender.append(List.of(batch(stream, UUID.randomUUID(), 1, new Target(0, 0), values)));
            }
            assertThat(values(stream)).containsExactly(values);
        }
    }

    @Test
    void append_databaseRestartedBetween_continues() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("restarted").withPartitions(1));
        Target target = new Target(0, 0);
        UUID producer = UUID.randomUUID();
        try (BatchAppender appender = appender("restarted")) {
            appender.append(List.of(batch("restarted", producer, 1, target, "a")));
            FlinkFixture.server().crash();
            FlinkFixture.server().restart();
            appender.append(List.of(batch("restarted", producer, 1, target, "a")));
            appender.append(List.of(batch("restarted", producer, 2, target, "b")));
        }
        assertThat(values("restarted")).containsExactly("a", "b");
    }

    /** As after a failover, while the address of the primary still leads to the former one. */
    @Test
    void append_connectionIsReadOnly_opensAnotherOne() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("read_only").withPartitions(1));
        String role = "read_only_" + System.nanoTime();
        SinkSettings settings = SinkFixture.settings(
                fixture.urls(), role, "secret", "read_only", DeliveryGuarantee.EXACTLY_ONCE, Duration.ofSeconds(30));
        try (Connection admin = FlinkFixture.server().adminDataSource().getConnection();
                Statement statement = admin.createStatement();
                BatchAppender appender = new BatchAppender(settings)) {
            statement.execute("CREATE ROLE " + role + " LOGIN PASSWORD 'secret' IN ROLE "
                    + FlinkFixture.server().username());
            statement.execute("ALTER ROLE " + role + " SET default_transaction_read_only = on");
            appender.findRoutes(); // opens the connections
            statement.execute("ALTER ROLE " + role + " RESET default_transaction_read_only");
            appender.append(List.of(batch("read_only", UUID.randomUUID(), 1, new Target(0, 0), "a")));
        }
        assertThat(values("read_only")).containsExactly("a");
    }

    @Test
    void append_signalsConsumersOnce() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("signalled").withPartitions(2));
        String database = fixture.urls().get(0);
        try (Connection listener = DriverManager.getConnection(
                        database,
                        FlinkFixture.server().username(),
                        FlinkFixture.server().password());
                BatchAppender appender = appender("signalled")) {
            int shard;
            int stream;
            try (Statement statement = listener.createStatement()) {
                statement.execute("LISTEN eventsql_wake");
                ResultSet row =
                        statement.executeQuery("SELECT shard_number, stream_id FROM eventsql.shard, eventsql.stream"
                                + " WHERE name = 'signalled'");
                row.next();
                shard = row.getInt(1);
                stream = row.getInt(2);
            }
            appender.append(List.of(
                    batch("signalled", UUID.randomUUID(), 1, new Target(shard, 0), "a"),
                    batch("signalled", UUID.randomUUID(), 1, new Target(shard, 1), "b")));
            PGConnection connection = listener.unwrap(PGConnection.class);
            // Other processes of the fixture signal, too.
            TestCluster.await("the signal", () -> {
                try {
                    return Stream.of(connection.getNotifications(10))
                            .map(each -> each.getParameter().replaceFirst(".* ", ""))
                            .anyMatch(Set.of(stream + ":0," + stream + ":1", stream + ":1," + stream + ":0")::contains);
                } catch (SQLException e) {
                    throw new IllegalStateException(e);
                }
            });
        }
    }

    @Test
    void append_slotMapChanged_routesAnewAndOnce() throws Exception {
        String stream = "grown";
        fixture.eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
        Target former = new Target(0, 0);
        UUID producer = UUID.randomUUID();
        List<EventBatch> stored = List.of(batch(stream, producer, 1, former, "a"));
        List<EventBatch> pending =
                List.of(batch(stream, producer, 2, former, "b"), batch(stream, producer, 3, former, "c"));
        try (BatchAppender appender = appender(stream)) {
            appender.append(stored);
        }
        String shards = "UPDATE eventsql.shard SET map_version = %d, slot_map = array_fill(%d::smallint, ARRAY[1024])";
        String slotMap = fixture.query("SELECT slot_map FROM eventsql.shard").get(0);
        fixture.query(shards.formatted(2, 1));
        fixture.query("UPDATE eventsql.stream_partition SET map_version = 2");
        try {
            for (int attempt = 0; attempt < 2; attempt++) {
                try (BatchAppender appender = appender(stream)) {
                    appender.append(stored);
                    appender.append(pending);
                }
            }
        } finally {
            fixture.query("UPDATE eventsql.shard SET map_version = 1, slot_map = '" + slotMap + "'");
            fixture.query("UPDATE eventsql.stream_partition SET map_version = 1");
        }
        assertThat(fixture.query(
                        "SELECT s.shard_number, convert_from(e.value, 'UTF8') FROM eventsql.events_grown e, eventsql.shard s"
                                + " ORDER BY e.event_offset"))
                .containsExactlyInAnyOrder("0|a", "1|b", "1|c");
    }

    @Test
    void append_keysHaveMovedBetweenShards_failsAndSaysSo() throws Exception {
        try (FlinkFixture other = new FlinkFixture()) {
            other.eventSql.createStream(StreamSpec.of("moved").withPartitions(1));
            SinkSettings settings = settings("moved", DeliveryGuarantee.AT_LEAST_ONCE);
            SinkSettings ofOther = new SinkSettings(
                    other.urls(),
                    settings.user(),
                    settings.password(),
                    settings.schema(),
                    settings.stream(),
                    settings.sink(),
                    settings.guarantee(),
                    1,
                    1,
                    Duration.ZERO,
                    settings.networkTimeout(),
                    settings.failureTimeout());
            try (BatchAppender appender = new BatchAppender(ofOther)) {
                appender.append(List.of(batch("moved", UUID.randomUUID(), 1, new Target(0, 0), "a")));
                other.eventSql.moveShards(List.of(1));
                assertThatIOException()
                        .isThrownBy(() ->
                                appender.append(List.of(batch("moved", UUID.randomUUID(), 1, new Target(0, 0), "b"))))
                        .withMessageContaining("which sinks do not support");
            }
            other.eventSql.createStream(StreamSpec.of("later").withPartitions(1));
            SinkSettings later = new SinkSettings(
                    other.urls(),
                    settings.user(),
                    settings.password(),
                    settings.schema(),
                    "later",
                    settings.sink(),
                    DeliveryGuarantee.EXACTLY_ONCE,
                    1,
                    1,
                    Duration.ZERO,
                    settings.networkTimeout(),
                    settings.failureTimeout());
            try (BatchAppender appender = new BatchAppender(later)) {
                KeyRoutes routes = appender.findRoutes();
                Target target = routes.of("k");
                assertThat(target).isEqualTo(new Target(1, 0)).isEqualTo(routes.ofTurn(0));
                EncodedEvent event = new EncodedEvent("k", new byte[] {1}, null);
                appender.append(List.of(new EventBatch(
                        UUID.randomUUID(), 1, "later", target, routes.mapVersion(target), List.of(event))));
            }
            // The stream of a sink that writes exactly once stays where it is, also for a sink that has not noticed.
            try (BatchAppender noticesNothing = new BatchAppender(later);
                    BatchAppender restarted = new BatchAppender(later)) {
                KeyRoutes before = noticesNothing.findRoutes();
                UUID producer = UUID.randomUUID();
                List<EventBatch> checkpoint =
                        List.of(ofLater(before, producer, 1, "b"), ofLater(before, producer, 2, "c"));
                noticesNothing.append(checkpoint.subList(0, 1));
                assertThat(other.eventSql.moveShards(List.of(0)).staying()).containsExactly("later");
                noticesNothing.append(checkpoint);
                KeyRoutes after = restarted.findRoutes();
                assertThat(after.of("k")).isEqualTo(before.of("k")).isEqualTo(after.ofTurn(0));
                restarted.append(checkpoint);
                restarted.append(List.of(ofLater(after, UUID.randomUUID(), 1, "d")));
            }
            assertThat(other.query("SELECT s.shard_number, convert_from(e.value, 'UTF8')"
                            + " FROM eventsql.events_later e, eventsql.shard s WHERE octet_length(e.value) > 0"
                            + " AND e.value <> '\\x01' ORDER BY e.event_offset"))
                    .containsExactly("1|b", "1|c", "1|d");
        }
    }

    private static EventBatch ofLater(KeyRoutes routes, UUID producer, long number, String value) {
        Target target = routes.of("k");
        return new EventBatch(
                producer,
                number,
                "later",
                target,
                routes.mapVersion(target),
                List.of(new EncodedEvent("k", value.getBytes(StandardCharsets.UTF_8), null)));
    }

    @Test
    void wrongDatabases_areRejected() {
        try (BatchAppender appender = appender("none")) {
            assertThatIOException()
                    .isThrownBy(appender::findRoutes)
                    .withMessageContaining("Stream none does not exist");
        }
        SinkSettings all = settings("none", DeliveryGuarantee.EXACTLY_ONCE);
        SinkSettings oneOfTwo = new SinkSettings(
                all.urls().subList(0, 1),
                all.user(),
                all.password(),
                all.schema(),
                all.stream(),
                all.sink(),
                all.guarantee(),
                1,
                1,
                Duration.ZERO,
                all.networkTimeout(),
                all.failureTimeout());
        try (BatchAppender appender = new BatchAppender(oneOfTwo)) {
            assertThatIOException().isThrownBy(appender::findRoutes).withMessageContaining("but 1 databases are given");
        }
    }
}
