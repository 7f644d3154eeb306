package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.fixture.AppendFixture;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.internal.sql.AppendStatement.Rows;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The rules of the append function for batches of several streams: what holds for one partition holds for each of them. */
class AppendStreamsIT extends AppendFixture {
    private static String idOf(String stream) {
        return "(SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "')";
    }

    private static void assertNothingStored(String... streams) throws Exception {
        for (String stream : streams) {
            assertThat(read(stream)).isEmpty();
            assertThat(number("SELECT max(next_offset) FROM eventsql.producer_batch WHERE stream_id = " + idOf(stream)))
                    .as("head of %s", stream)
                    .isZero();
        }
    }

    @Test
    void append_again_returnsStoredOffsetsAndStoresNothing() throws Exception {
        createStream("again_a", 1);
        createStream("again_b", 1);
        append(UUID.randomUUID(), 1, Part.of("again_a", 0, "x", "y"));
        Part[] batch = {Part.of("again_a", 0, "a"), Part.of("again_b", 0, "b", "c")};
        assertThat(append(3, batch)).containsExactly(2, 0);
        append(UUID.randomUUID(), 1, Part.of("again_b", 0, "z"));
        assertThat(append(3, batch)).containsExactly(2, 0);
        assertThat(append(4, batch)).containsExactly(3, 3);
        assertThat(read("again_a")).extracting(Ledger.Stored::value).containsExactly("x", "y", "a", "a");
        assertThat(read("again_b")).extracting(Ledger.Stored::value).containsExactly("b", "c", "z", "b", "c");
        assertThat(number("SELECT count(*) FROM eventsql.producer_batch WHERE producer_id = '" + producer + "'"))
                .as("one row for each partition")
                .isEqualTo(2);
    }

    @Test
    void append_partOfBatchIsStored_isRejected() throws Exception {
        createStream("part_a", 1);
        createStream("part_b", 1);
        append(5, Part.of("part_b", 0, "b"));
        assertRejected("ES005", () -> append(5, Part.of("part_a", 0, "a"), Part.of("part_b", 0, "b")));
        assertNothingStored("part_a");
    }

    @Test
    void append_lowerBatchNumberInOne_isRejected() throws Exception {
        createStream("number_a", 1);
        createStream("number_b", 1);
        append(5, Part.of("number_b", 0, "b"));
        assertRejected("ES002", () -> append(4, Part.of("number_a", 0, "a"), Part.of("number_b", 0, "c")));
        assertNothingStored("number_a");
    }

    @Test
    void append_unknownPartitionOrStreamOfOne_isRejected() throws Exception {
        createStream("known", 1);
        createStream("known_too", 1);
        assertRejected("ES004", () -> append(1, Part.of("known", 0, "a"), Part.of("known_too", 1, "b")));
        Rows rows = rows(Part.of("known", 0, "a"), Part.of("known_too", 0, "b"));
        rows.streams()[1] = "another";
        try (Connection connection = pool.getConnection()) {
            assertThatThrownBy(() -> APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows))
                    .hasMessageContaining("is known_too, not another")
                    .extracting(e -> SqlErrors.state((SQLException) e))
                    .isEqualTo(SqlErrors.OTHER_STREAM);
        }
        assertNothingStored("known", "known_too");
    }

    @Test
    void append_otherMapVersionOfOne_isRejectedUnlessStored() throws Exception {
        createStream("map_a", 1);
        createStream("map_b", 1);
        Part[] stored = {Part.of("map_a", 0, "a"), Part.of("map_b", 0, "b")};
        assertThat(append(1, stored)).containsExactly(0, 0);
        execute("UPDATE eventsql.stream_partition SET map_version = 2 WHERE stream_id = " + idOf("map_b"));
        assertThat(append(1, stored)).containsExactly(0, 0);
        assertRejected("ES001", () -> append(2, Part.of("map_a", 0, "c"), Part.of("map_b", 0, "d")));
        assertThat(read("map_a")).hasSize(1);
        assertThat(read("map_b")).hasSize(1);
    }

    @Test
    void append_mapChangesDuringLockWait_isRejected() throws Exception {
        createStream("change_a", 1);
        createStream("change_b", 1);
        try (Connection holder = pool.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            statement.execute(
                    "UPDATE eventsql.stream_partition SET map_version = 2 WHERE stream_id = " + idOf("change_b"));
            CompletableFuture<long[]> append =
                    async(() -> append(1, Part.of("change_a", 0, "a"), Part.of("change_b", 0, "b")));
            awaitAppendsWaitingForALock(1);
            holder.commit();
            assertThatThrownBy(() -> append.get(120, TimeUnit.SECONDS))
                    .rootCause()
                    .hasMessageContaining("map version is 2, not 1");
        }
        assertNothingStored("change_a", "change_b");
    }

    /** What was stored during the wait is seen: the offsets follow it. */
    @Test
    void append_anotherAppendsDuringLockWait_offsetsFollow() throws Exception {
        createStream("wait_a", 1);
        createStream("wait_b", 1);
        try (Connection holder = pool.getConnection()) {
            holder.setAutoCommit(false);
            APPEND.execute(
                    holder,
                    UUID.randomUUID(),
                    1,
                    MapFence.of(MAP_VERSION),
                    null,
                    rows(Part.of("wait_b", 0, "x", "y", "z")));
            CompletableFuture<long[]> append =
                    async(() -> append(1, Part.of("wait_a", 0, "a"), Part.of("wait_b", 0, "b")));
            awaitAppendsWaitingForALock(1);
            holder.commit();
            assertThat(append.get(120, TimeUnit.SECONDS)).containsExactly(0, 3);
        }
        assertThat(read("wait_b")).extracting(Ledger.Stored::value).containsExactly("x", "y", "z", "b");
    }

    @Test
    void append_timeLimitPassesDuringLockWait_isRejectedWithoutAnotherLock() throws Exception {
        createStream("limit_a", 1);
        createStream("limit_b", 1);
        createStream("limit_c", 1);
        Rows rows = rows(Part.of("limit_a", 0, "a"), Part.of("limit_b", 0, "b"), Part.of("limit_c", 0, "c"));
        try (Connection first = pool.getConnection();
                Connection second = pool.getConnection();
                Statement holdsFirst = first.createStatement();
                Statement holdsSecond = second.createStatement()) {
            first.setAutoCommit(false);
            second.setAutoCommit(false);
            String lock = "SELECT FROM eventsql.stream_partition WHERE stream_id = %s FOR UPDATE";
            holdsFirst.execute(lock.formatted(idOf("limit_a")));
            holdsSecond.execute(lock.formatted(idOf("limit_b")));
            CompletableFuture<long[]> append = async(() -> {
                try (Connection connection = pool.getConnection();
                        NetworkTimeout limit = NetworkTimeout.set(connection, Duration.ofSeconds(6))) {
                    return APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows);
                }
            });
            awaitAppendsWaitingForALock(1);
            // The limit is 3 s for each lock and for the statement. Each wait is shorter, both together are longer.
            String sleepUntil = "SELECT pg_sleep_until(min(query_start) + interval '%s') FROM pg_stat_activity"
                    + " WHERE state = 'active' AND query LIKE '%%append_v%%' AND pid <> pg_backend_pid()";
            holdsFirst.execute(sleepUntil.formatted("2 s"));
            first.commit();
            awaitAppendsWaitingForALock(1);
            holdsSecond.execute(sleepUntil.formatted("3.5 s"));
            second.commit();
            assertThatThrownBy(() -> append.get(120, TimeUnit.SECONDS))
                    .rootCause()
                    .hasMessageContaining("locked 2 of 3 partitions");
        }
        assertNothingStored("limit_a", "limit_b", "limit_c");
    }

    @Test
    void append_manyAtOnce_noDeadlockAndEachStreamGapless() throws Exception {
        Random random = Seeds.random("AppendStreamsIT");
        List<String> streams =
                IntStream.range(0, 6).mapToObj(i -> "at_once_" + i).toList();
        streams.forEach(stream -> createStream(stream, 2));
        List<CompletableFuture<Integer>> appenders = new ArrayList<>();
        for (int appender = 0; appender < 4; appender++) {
            Random own = new Random(random.nextLong());
            String name = "p" + appender + "/";
            appenders.add(async(() -> {
                UUID producerId = UUID.randomUUID();
                int events = 0;
                for (int batch = 1; batch <= 40; batch++) {
                    List<Part> parts = new ArrayList<>();
                    for (String stream : streams) {
                        for (int partition = 0; partition < 2; partition++) {
                            if (own.nextInt(3) == 0) {
                                String[] values = new String[1 + own.nextInt(own.nextBoolean() ? 1 : 3)];
                                for (int i = 0; i < values.length; i++) {
                                    values[i] = name + events++;
                                }
                                parts.add(Part.of(stream, partition, values));
                            }
                        }
                    }
                    if (!parts.isEmpty()) {
                        append(producerId, batch, parts.toArray(Part[]::new));
                    }
                }
                return events;
            }));
        }
        int events = 0;
        for (CompletableFuture<Integer> appender : appenders) {
            events += appender.get(120, TimeUnit.SECONDS);
        }
        List<String> values = new ArrayList<>();
        for (String stream : streams) {
            List<Ledger.Stored> stored = read(stream);
            Ledger.assertGapless(stored);
            stored.forEach(event -> values.add(event.value()));
        }
        assertThat(values).doesNotHaveDuplicates().hasSize(events);
    }
}
