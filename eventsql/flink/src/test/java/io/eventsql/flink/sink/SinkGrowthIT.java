package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.flink.FlinkFixture;
import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.KeyRoutes.Target;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Sinks of streams that grow: each event is stored once, where the library looks for it, in the order of its key. */
@Timeout(180)
class SinkGrowthIT {
    private static final int EVENTS = 200;
    private static final int KEYS = 100;
    private static final int PUBLISHED_EVENTS_MAX = 20_000;

    private static FlinkFixture fixture;

    @TempDir
    Path folder;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    @ParameterizedTest
    @EnumSource(
            value = DeliveryGuarantee.class,
            names = {"EXACTLY_ONCE", "AT_LEAST_ONCE"})
    void job_streamGrowsWhileItRuns_storesEachEventOnceInOrder(DeliveryGuarantee guarantee) throws Exception {
        CountingJob job = new CountingJob(fixture, "running_" + guarantee.ordinal());
        try (TestCluster cluster = new TestCluster(folder)) {
            JobID id = cluster.submit(
                    2,
                    Duration.ofMillis(200),
                    null,
                    environment -> job.add(
                            environment,
                            null,
                            job.sink().deliveryGuarantee(guarantee).build()));
            job.publish(0, EVENTS);
            int published = EVENTS;
            TestCluster.await("the first results", () -> job.written() >= EVENTS);
            CompletableFuture<Void> growth = CompletableFuture.runAsync(() -> job.grow(8));
            while (!growth.isDone() && published < PUBLISHED_EVENTS_MAX) {
                job.publish(published, published + 10);
                published += 10;
            }
            growth.join();
            job.publish(published, published + EVENTS);
            int all = published + EVENTS;
            TestCluster.await("all results", () -> job.written() >= all);
            cluster.stop(id);
            job.assertEachEventOnce(all);
            assertThat(job.writtenToNewPartitions()).isPositive();
        }
    }

    @Test
    void savepoint_committedAfterTheStreamHasGrown_isStoredOnceInOrder() throws Exception {
        CountingJob job = new CountingJob(fixture, "prepared");
        try (TestCluster cluster = new TestCluster(folder)) {
            job.publish(0, EVENTS);
            int counted = CountingJob.COUNTED.get() + EVENTS;
            JobID first = cluster.submit(
                    2,
                    null,
                    null,
                    environment -> job.add(environment, null, job.sink().build()));
            TestCluster.await("events to be counted", () -> CountingJob.COUNTED.get() >= counted);
            String savepoint = cluster.savepoint(first);
            cluster.cancel(first);
            assertThat(job.written()).isZero();

            job.grow(8);
            job.publish(EVENTS, 2 * EVENTS);
            JobID second = cluster.submit(
                    1,
                    null,
                    savepoint,
                    environment -> job.add(environment, null, job.sink().build()));
            TestCluster.await("events to be counted", () -> CountingJob.COUNTED.get() >= counted + EVENTS);
            cluster.stop(second);
            job.assertEachEventOnce(2 * EVENTS);
            assertThat(job.writtenToNewPartitions()).isPositive();
        }
    }

    @Test
    void batch_committedAfterEachGrowth_isStoredOnce() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("twice").withPartitions(1));
        List<String> keys = IntStream.range(0, KEYS).mapToObj(n -> "k" + n).toList();
        List<EventBatch> batches;
        try (BatchAppender appender = appender("twice", fixture.urls())) {
            EventBuffer buffer = new EventBuffer("twice", appender.findRoutes(), 0);
            keys.forEach(key -> buffer.add(SinkFixture.event(key)));
            buffer.add(SinkFixture.event(null));
            batches = buffer.drain();
        }
        for (int partitions : List.of(2, 4, 8)) {
            fixture.eventSql.grow("twice", partitions);
            try (BatchAppender appender = appender("twice", fixture.urls())) {
                appender.append(batches);
                assertThat(stored("twice"))
                        .as("committed when the stream has %s partitions", partitions)
                        .hasSize(KEYS + 1);
            }
        }
        assertThat(fixture.query("SELECT key FROM eventsql.events_twice WHERE key IS NOT NULL"))
                .containsExactlyInAnyOrderElementsOf(keys);
    }

    @Test
    void routes_areThoseOfTheLibrary_andFoundAgainAfterAGrowth() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("library").withPartitions(4));
        try (BatchAppender appender = appender("library", fixture.urls())) {
            KeyRoutes former = appender.findRoutes();
            assertThat(former.shards()).containsOnly(PartitionMap.first(1, 4));
            fixture.eventSql.grow("library", 6);
            appender.append(List.of(new EventBatch(
                    UUID.randomUUID(), 1, "library", former.of("k0"), 1, List.of(SinkFixture.event("k0")))));
            KeyRoutes now = appender.refreshedRoutes();
            assertThat(now.shards()).allMatch(map -> map.version() == 2 && map.partitions() == 6);
            fixture.eventSql
                    .publisher()
                    .publishAll(
                            "library",
                            IntStream.range(0, KEYS)
                                    .mapToObj(n -> Event.ofText("k" + n, "v"))
                                    .toList());
            assertThat(stored("library")).hasSize(KEYS + 1).allSatisfy(row -> assertPlace(row, now));
        }
    }

    @Test
    void shardUnavailableAtFirst_itsEventsAreRoutedByItsMapLater() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("unread").withPartitions(4));
        fixture.eventSql.grow("unread", 8);
        KeyRoutes now;
        try (BatchAppender appender = appender("unread", fixture.urls())) {
            now = appender.findRoutes();
        }
        List<String> oneOfTwo = new ArrayList<>(fixture.urls());
        oneOfTwo.set(1, "jdbc:postgresql://localhost:1/unavailable");
        List<EventBatch> batches;
        try (BatchAppender appender = appender("unread", oneOfTwo)) {
            KeyRoutes routes = appender.findRoutes();
            assertThat(routes.shards()).containsExactlyInAnyOrder(now.shards().get(0), PartitionMap.UNREAD);
            EventBuffer buffer = new EventBuffer("unread", routes, 0);
            for (int n = 0; n < KEYS; n++) {
                buffer.add(SinkFixture.event("k" + n));
            }
            batches = buffer.drain();
        }
        for (int attempt = 0; attempt < 2; attempt++) {
            try (BatchAppender appender = appender("unread", fixture.urls())) {
                appender.append(batches);
            }
        }
        assertThat(stored("unread")).hasSize(KEYS).allSatisfy(row -> assertPlace(row, now));
    }

    @Test
    void rolePublisher_isEnough() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("granted").withPartitions(4));
        String login = "sink_of_a_test";
        applyRoles(login);
        try (BatchAppender appender = appender("granted", fixture.urls(), login, login)) {
            EventBuffer buffer = new EventBuffer("granted", appender.findRoutes(), 0);
            IntStream.range(0, KEYS).forEach(n -> buffer.add(SinkFixture.event("k" + n)));
            fixture.eventSql.grow("granted", 8);
            appender.append(buffer.drain());
            KeyRoutes now = appender.refreshedRoutes();
            assertThat(stored("granted")).hasSize(KEYS).allSatisfy(row -> assertPlace(row, now));
        }
    }

    /** Applies the library's roles to the databases, whose owner so far becomes a member of the new one. Creates a publisher. */
    private static void applyRoles(String publisher) throws Exception {
        PGSimpleDataSource admin = (PGSimpleDataSource) FlinkFixture.server().adminDataSource();
        String roles;
        try (InputStream file = Objects.requireNonNull(EventSql.class.getResourceAsStream("db/roles.sql"))) {
            roles = new String(file.readAllBytes(), StandardCharsets.UTF_8);
        }
        for (String url : fixture.urls()) {
            try (Connection connection = DriverManager.getConnection(url, admin.getUser(), admin.getPassword());
                    Statement statement = connection.createStatement()) {
                statement.execute(roles);
                statement.execute(
                        "GRANT eventsql_owner TO " + FlinkFixture.server().username());
            }
        }
        try (Connection connection = admin.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE ROLE %1$s LOGIN PASSWORD '%1$s' IN ROLE eventsql_publisher".formatted(publisher));
        }
    }

    private static void assertPlace(String row, KeyRoutes routes) {
        String[] columns = row.split("\\|");
        assertThat(new Target(Integer.parseInt(columns[1]), Integer.parseInt(columns[2])))
                .as(columns[0])
                .isEqualTo(routes.of(columns[0]));
    }

    /** Returns key, shard and partition of each event. */
    private static List<String> stored(String stream) {
        return fixture.query(
                "SELECT e.key, s.shard_number, e.partition FROM eventsql.events_" + stream + " e, eventsql.shard s");
    }

    private static BatchAppender appender(String stream, List<String> urls) {
        return appender(
                stream,
                urls,
                FlinkFixture.server().username(),
                FlinkFixture.server().password());
    }

    private static BatchAppender appender(String stream, List<String> urls, String user, String password) {
        List<String> inAnyOrder = new ArrayList<>(urls);
        Collections.reverse(inAnyOrder);
        return new BatchAppender(SinkFixture.settings(
                inAnyOrder, user, password, stream, DeliveryGuarantee.EXACTLY_ONCE, Duration.ofSeconds(30)));
    }
}
