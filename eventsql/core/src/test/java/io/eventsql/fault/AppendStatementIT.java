package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fault.FaultProxy.RequestFault;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.AppendStatement.Rows;
import io.eventsql.internal.sql.SqlSchema;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The rules of the append function one by one, and what the library makes of its refusals. */
class AppendStatementIT {
    private static final AppendStatement APPEND = new AppendStatement(new SqlSchema("eventsql"));
    private static final int MAP_VERSION = 1;

    private static EventsDb eventsDb;
    private static HikariDataSource pool;
    private static EventSql eventSql;

    private final UUID producer = UUID.randomUUID();

    @BeforeAll
    static void start() {
        eventsDb = EventsDb.start();
        pool = Pools.pool(eventsDb);
        // Small batches, so that few segments are kept ready.
        eventSql = EventSql.builder(pool)
                .settings(Settings.builder().maxBatchEvents(100).build())
                .build();
    }

    @AfterAll
    static void stop() {
        eventSql.close();
        pool.close();
        eventsDb.close();
    }

    // ---- what the statement stores ----

    /** The events of one partition in a batch. */
    private record Part(String stream, int partition, List<String> values) {
        static Part of(String stream, int partition, String... values) {
            return new Part(stream, partition, List.of(values));
        }
    }

    private static Rows rows(Part... parts) throws SQLException {
        int[] streamIds = new int[parts.length];
        List<Integer> groups = new ArrayList<>();
        List<Integer> indexes = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        for (int i = 0; i < parts.length; i++) {
            streamIds[i] = (int) number("SELECT stream_id FROM eventsql.stream WHERE name = '" + parts[i].stream + "'");
            for (String value : parts[i].values) {
                groups.add(i + 1);
                indexes.add(parts[i].values.indexOf(value));
                values.add(value.getBytes(StandardCharsets.UTF_8));
            }
        }
        int size = values.size();
        return new Rows(
                Stream.of(parts).map(Part::stream).toArray(String[]::new),
                streamIds,
                Stream.of(parts).mapToInt(Part::partition).toArray(),
                Stream.of(parts).mapToInt(part -> part.values.size()).toArray(),
                groups.stream().mapToInt(Integer::intValue).toArray(),
                indexes.stream().mapToInt(Integer::intValue).toArray(),
                new String[size],
                values.toArray(byte[][]::new),
                new String[size]);
    }

    private long[] append(long number, Part... parts) throws SQLException {
        return append(producer, number, parts);
    }

    private static long[] append(UUID producer, long number, Part... parts) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return APPEND.execute(connection, producer, number, MAP_VERSION, rows(parts));
        }
    }

    private static String[] values(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> "e" + i).toArray(String[]::new);
    }

    private static void createStream(String name, int partitions) {
        eventSql.createStream(StreamSpec.of(name).withPartitions(partitions).withSegmentSize(100));
    }

    private static void execute(String sql) throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private static long number(String query) throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(query)) {
            row.next();
            return row.getLong(1);
        }
    }

    private static List<Ledger.Stored> read(String stream) throws SQLException {
        return Ledger.read(stream, List.of(pool));
    }

    private static void assertRefused(String state, ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo(state));
    }

    @Test
    void append_batchAfterBatch_offsetsAreGaplessAndInOrder() throws Exception {
        createStream("gapless", 2);
        assertThat(append(1, Part.of("gapless", 0, "a", "b"))).containsExactly(0);
        assertThat(append(2, Part.of("gapless", 0, "c"), Part.of("gapless", 1, "x", "y", "z")))
                .containsExactly(2, 0);
        assertThat(append(UUID.randomUUID(), 1, Part.of("gapless", 0, "d"))).containsExactly(3);
        assertThat(append(3, Part.of("gapless", 1, "w"))).containsExactly(3);

        List<Ledger.Stored> stored = read("gapless");
        Ledger.assertGapless(stored);
        assertThat(stored).extracting(Ledger.Stored::value).containsExactly("a", "b", "c", "d", "x", "y", "z", "w");
    }

    @Test
    void append_sameNumberAgain_answersTheStoredOffsetsAndAddsNothing() throws Exception {
        createStream("again", 2);
        append(UUID.randomUUID(), 1, Part.of("again", 0, "other"));
        Part[] batch = {Part.of("again", 0, "a", "b"), Part.of("again", 1, "c")};
        assertThat(append(7, batch)).containsExactly(1, 0);
        append(UUID.randomUUID(), 1, Part.of("again", 0, "another"));
        assertThat(append(7, batch)).containsExactly(1, 0);
        assertThat(append(7, batch)).containsExactly(1, 0);

        assertThat(read("again")).extracting(Ledger.Stored::value).containsExactly("other", "a", "b", "another", "c");
    }

    @Test
    void append_lowerNumber_isRefusedAndNothingIsStored() throws Exception {
        createStream("lower", 2);
        append(5, Part.of("lower", 0, "a"));
        assertRefused("ES002", () -> append(4, Part.of("lower", 0, "b")));
        assertRefused("ES002", () -> append(4, Part.of("lower", 0, "b"), Part.of("lower", 1, "c")));
        append(4, Part.of("lower", 1, "of another partition"));

        assertThat(read("lower")).extracting(Ledger.Stored::value).containsExactly("a", "of another partition");
    }

    @Test
    void append_gapsInTheNumbers_areLegal() throws Exception {
        createStream("number_gaps", 1);
        assertThat(append(1, Part.of("number_gaps", 0, "a"))).containsExactly(0);
        assertThat(append(50, Part.of("number_gaps", 0, "b"))).containsExactly(1);
        assertThat(append(1_000_000_000_000L, Part.of("number_gaps", 0, "c"))).containsExactly(2);
    }

    @Test
    void append_onlyAPartOfTheBatchIsStoredAlready_isRefusedAndNothingIsStored() throws Exception {
        createStream("partial", 2);
        append(5, Part.of("partial", 0, "a"));
        assertRefused("ES005", () -> append(5, Part.of("partial", 0, "a"), Part.of("partial", 1, "b")));
        assertThat(read("partial")).extracting(Ledger.Stored::value).containsExactly("a");
    }

    @ParameterizedTest
    @ValueSource(ints = {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE})
    void append_notReadCommitted_isRefused(int isolation) throws Exception {
        String stream = "isolation" + isolation;
        createStream(stream, 1);
        try (Connection connection = eventsDb.dataSource().getConnection()) {
            connection.setTransactionIsolation(isolation);
            Rows rows = rows(Part.of(stream, 0, "a"));
            assertRefused("ES003", () -> APPEND.execute(connection, producer, 1, MAP_VERSION, rows));
        }
        assertThat(read(stream)).isEmpty();
    }

    @Test
    void append_otherMapVersion_isRefused() throws Exception {
        createStream("map_version", 1);
        try (Connection connection = pool.getConnection()) {
            Rows rows = rows(Part.of("map_version", 0, "a"));
            assertRefused("ES001", () -> APPEND.execute(connection, producer, 1, MAP_VERSION + 1, rows));
            assertRefused("ES001", () -> APPEND.execute(connection, producer, 1, MAP_VERSION - 1, rows));
        }
        assertThat(read("map_version")).isEmpty();
    }

    @Test
    void append_mapChangesWhileItWaitsForTheLock_isRefused() throws Exception {
        createStream("map_change", 1);
        try (Connection holder = pool.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            statement.execute("UPDATE eventsql.stream_partition SET map_version = map_version + 1"
                    + " WHERE stream_id = (SELECT stream_id FROM eventsql.stream WHERE name = 'map_change')");
            CompletableFuture<long[]> append = async(() -> append(1, Part.of("map_change", 0, "a")));
            awaitAppendsWaitingForALock(1);
            holder.commit();
            assertThatThrownBy(() -> append.get(10, TimeUnit.SECONDS))
                    .rootCause()
                    .hasMessageContaining("map version is 2, not 1");
        }
        assertThat(read("map_change")).isEmpty();
    }

    @Test
    void append_unknownPartition_isRefusedAndNothingIsStored() throws Exception {
        createStream("unknown_partition", 1);
        assertRefused(
                "ES004", () -> append(1, Part.of("unknown_partition", 0, "a"), Part.of("unknown_partition", 1, "b")));
        assertThat(read("unknown_partition")).isEmpty();
    }

    @Test
    void append_batchOverTwoSegments_isStoredGapless() throws Exception {
        createStream("straddles", 1);
        append(1, Part.of("straddles", 0, values(0, 60)));
        assertThat(append(2, Part.of("straddles", 0, values(60, 180)))).containsExactly(60);
        List<Ledger.Stored> stored = read("straddles");
        Ledger.assertGapless(stored);
        assertThat(stored).extracting(Ledger.Stored::value).containsExactly(values(0, 180));
        assertThat(number("SELECT count(*) FROM eventsql.events_straddles__p0_s0"))
                .isEqualTo(100);
        assertThat(number("SELECT count(*) FROM eventsql.events_straddles__p0_s1"))
                .isEqualTo(80);
    }

    @Test
    void append_noSegmentForSomeOfIt_storesNothingAndTheSameNumberIsGoodLater() throws Exception {
        createStream("no_segment", 1);
        append(1, Part.of("no_segment", 0, values(0, 199)));
        assertRefused("23514", () -> append(2, Part.of("no_segment", 0, "last", "beyond")));
        assertThat(read("no_segment")).hasSize(199);
        try (EventSql library = EventSql.builder(pool).build()) {
            library.publisher().publish("no_segment", Event.ofText("uses the room"));
            library.publisher().publish("no_segment", Event.ofText("makes room"));
        }
        assertThat(append(2, Part.of("no_segment", 0, "last", "beyond"))).containsExactly(201);
    }

    @Test
    void append_severalStreamsInABatch_eachHasItsOwnOffsets() throws Exception {
        createStream("several_a", 2);
        createStream("several_b", 2);
        Part[] first = {
            Part.of("several_a", 0, "a0"), Part.of("several_a", 1, "a1", "a2"), Part.of("several_b", 1, "b0", "b1")
        };
        assertThat(append(1, first)).containsExactly(0, 0, 0);
        assertThat(append(
                        2, Part.of("several_a", 1, "a3"), Part.of("several_b", 0, "b2"), Part.of("several_b", 1, "b3")))
                .containsExactly(2, 0, 2);
        assertThat(append(
                        2, Part.of("several_a", 1, "a3"), Part.of("several_b", 0, "b2"), Part.of("several_b", 1, "b3")))
                .containsExactly(2, 0, 2);

        assertThat(read("several_a")).extracting(Ledger.Stored::value).containsExactly("a0", "a1", "a2", "a3");
        assertThat(read("several_b")).extracting(Ledger.Stored::value).containsExactly("b2", "b0", "b1", "b3");
        Ledger.assertGapless(read("several_a"));
        Ledger.assertGapless(read("several_b"));
    }

    /** A deferred trigger runs at the commit itself, so it sees what the commit will do. */
    @ParameterizedTest
    @CsvSource({"off, on", "local, on", "on, on", "remote_write, remote_write", "remote_apply, remote_apply"})
    void append_weakSynchronousCommit_isRaisedUntilTheCommit(String ofSession, String atCommit) throws Exception {
        String stream = "sync_" + ofSession;
        createStream(stream, 1);
        execute("CREATE TABLE " + stream + "_seen (setting text)");
        execute("CREATE FUNCTION " + stream + "_see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
                + stream + "_seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$");
        execute("CREATE CONSTRAINT TRIGGER see AFTER INSERT ON eventsql.events_" + stream
                + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + stream + "_see()");
        try (Connection connection = eventsDb.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("SET synchronous_commit = " + ofSession);
            APPEND.execute(connection, producer, 1, MAP_VERSION, rows(Part.of(stream, 0, "a")));
            assertThat(text(statement, "SHOW synchronous_commit"))
                    .as("the session keeps its own")
                    .isEqualTo(ofSession);
            assertThat(text(statement, "SELECT setting FROM " + stream + "_seen"))
                    .isEqualTo(atCommit);
        }
    }

    private static String text(Statement statement, String query) throws SQLException {
        try (ResultSet row = statement.executeQuery(query)) {
            row.next();
            return row.getString(1);
        }
    }

    @Test
    void append_clockRanBackwards_publishedAtDoesNot() throws Exception {
        createStream("clock", 1);
        append(1, Part.of("clock", 0, "a"));
        execute("UPDATE eventsql.producer_batch SET published_at = clock_timestamp() + interval '1 hour'"
                + " WHERE stream_id = (SELECT stream_id FROM eventsql.stream WHERE name = 'clock')");
        append(2, Part.of("clock", 0, "b"));
        append(UUID.randomUUID(), 1, Part.of("clock", 0, "c"));

        assertThat(number("SELECT count(*) FROM eventsql.events_clock"
                        + " WHERE event_offset > 0 AND published_at > clock_timestamp() + interval '50 minutes'"))
                .isEqualTo(2);
        assertThat(number("SELECT count(*) FROM (SELECT published_at < lag(published_at) OVER (ORDER BY event_offset)"
                        + " AS backwards FROM eventsql.events_clock) AS times WHERE backwards"))
                .isZero();
    }

    // ---- the resend of a batch whose original is still open ----

    /** Something that may fail with a checked exception. */
    private interface Call<T> {
        T run() throws Exception;
    }

    private static <T> CompletableFuture<T> async(Call<T> call) {
        CompletableFuture<T> future = new CompletableFuture<>();
        Thread.ofVirtual().start(() -> {
            try {
                future.complete(call.run());
            } catch (Throwable e) {
                future.completeExceptionally(e);
            }
        });
        return future;
    }

    private static void awaitAppendsWaitingForALock(int count) {
        await().atMost(Duration.ofSeconds(10))
                .until(() -> number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                + " AND query LIKE '%append_v1%'")
                        == count);
    }

    @Test
    void append_originalIsStillOpenAndCommitsLater_resendsWaitAndGetItsOffsets() throws Exception {
        createStream("open_commits", 1);
        append(1, Part.of("open_commits", 0, "before"));
        try (Connection original = pool.getConnection()) {
            original.setAutoCommit(false);
            Rows rows = rows(Part.of("open_commits", 0, "a", "b"));
            assertThat(APPEND.execute(original, producer, 2, MAP_VERSION, rows)).containsExactly(1);
            CompletableFuture<long[]> resend = async(() -> append(2, Part.of("open_commits", 0, "a", "b")));
            CompletableFuture<long[]> resendAgain = async(() -> append(2, Part.of("open_commits", 0, "a", "b")));
            awaitAppendsWaitingForALock(2);
            original.commit();
            assertThat(resend.get(10, TimeUnit.SECONDS)).containsExactly(1);
            assertThat(resendAgain.get(10, TimeUnit.SECONDS)).containsExactly(1);
        }
        assertThat(read("open_commits")).extracting(Ledger.Stored::value).containsExactly("before", "a", "b");
    }

    @Test
    void append_originalIsStillOpenAndRollsBack_theResendIsStored() throws Exception {
        createStream("open_rolls_back", 1);
        try (Connection original = pool.getConnection()) {
            original.setAutoCommit(false);
            Rows rows = rows(Part.of("open_rolls_back", 0, "a", "b"));
            assertThat(APPEND.execute(original, producer, 1, MAP_VERSION, rows)).containsExactly(0);
            CompletableFuture<long[]> resend = async(() -> append(1, Part.of("open_rolls_back", 0, "a", "b")));
            awaitAppendsWaitingForALock(1);
            original.rollback();
            assertThat(resend.get(10, TimeUnit.SECONDS)).containsExactly(0);
        }
        assertThat(read("open_rolls_back")).extracting(Ledger.Stored::value).containsExactly("a", "b");
    }

    @Test
    void append_originalArrivesAfterResendAndLaterBatch_isRefused() throws Exception {
        createStream("late_original", 1);
        append(1, Part.of("late_original", 0, "a"));
        append(2, Part.of("late_original", 0, "b"));
        assertRefused("ES002", () -> append(1, Part.of("late_original", 0, "a")));
        assertThat(read("late_original")).extracting(Ledger.Stored::value).containsExactly("a", "b");
    }

    @Test
    void append_committedWithAWarning_isInDoubtAndTheResendIsHarmless() throws Exception {
        createStream("warned", 1);
        execute("CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
                + " $$ BEGIN RAISE WARNING 'as if canceled while waiting for a replica'; RETURN NULL; END $$");
        execute(
                "CREATE TRIGGER warn AFTER INSERT ON eventsql.events_warned FOR EACH STATEMENT EXECUTE FUNCTION warn()");
        assertThatThrownBy(() -> append(1, Part.of("warned", 0, "a")))
                .isInstanceOf(AppendStatement.WarnedException.class);
        assertThat(append(1, Part.of("warned", 0, "a"))).containsExactly(0);
        assertThat(eventSql.publisher().publish("warned", Event.ofText("b")).offset())
                .isEqualTo(1);
        assertThat(read("warned")).extracting(Ledger.Stored::value).containsExactly("a", "b");
    }

    // ---- what the library makes of it ----

    @Test
    void publish_poolIsRepeatableReadWithoutAutocommit_worksEndToEnd() throws Exception {
        try (HikariDataSource strict = Pools.pool(eventsDb, eventsDb.jdbcUrl(), config -> {
                    config.setAutoCommit(false);
                    config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
                });
                EventSql library = EventSql.builder(strict)
                        .settings(Settings.builder().maxBatchEvents(100).build())
                        .build()) {
            library.createStream(StreamSpec.of("strict_pool").withPartitions(2).withSegmentSize(100));
            Queue<String> handled = new ConcurrentLinkedQueue<>();
            library.subscribe(ConsumerSpec.of("strict_pool", "reader"), event -> handled.add(event.text()));
            List<String> published = new ArrayList<>();
            for (int i = 0; i < 60; i++) {
                library.publisher().publish("strict_pool", Event.ofText("k", "single" + i));
                library.publisher()
                        .publishAll("strict_pool", List.of(Event.ofText("all" + i), Event.ofText("k2", "b" + i)));
                Collections.addAll(published, "single" + i, "all" + i, "b" + i);
            }
            await().atMost(Duration.ofSeconds(20))
                    .untilAsserted(() -> assertThat(handled).containsExactlyInAnyOrderElementsOf(published));
            await().atMost(Duration.ofSeconds(20))
                    .untilAsserted(() -> assertThat(library.positions("strict_pool", "reader"))
                            .allMatch(position -> position.lag() == 0));
            Ledger.assertGapless(read("strict_pool"));
            List<StoredEvent> range = library.read(new EventPosition("strict_pool", 0, 0, 0), 10);
            assertThat(range).isNotEmpty();
            try (Connection connection = strict.getConnection()) {
                assertThat(connection.getAutoCommit())
                        .as("given back as it was")
                        .isFalse();
                assertThat(connection.getTransactionIsolation()).isEqualTo(Connection.TRANSACTION_REPEATABLE_READ);
            }
        }
    }

    /**
     * Two publishers fill batches over the same partitions of two streams, each in its own order. Without one lock order
     * they would deadlock: the server would notice after a second and cancel one.
     */
    @Test
    void publishAll_twoPublishersInOppositeOrder_neverDeadlock() throws Exception {
        eventSql.createStream(StreamSpec.of("order_a").withPartitions(4));
        eventSql.createStream(StreamSpec.of("order_b").withPartitions(4));
        List<Event> events = IntStream.range(0, 40)
                .mapToObj(i -> Event.ofText("key" + i, "e" + i))
                .toList();
        List<Event> reversed = new ArrayList<>(events);
        Collections.reverse(reversed);
        long deadlocks = deadlocks();
        try (HikariDataSource own = Pools.pool(eventsDb);
                EventSql one = EventSql.builder(own).build();
                EventSql other = EventSql.builder(own).build()) {
            for (int i = 0; i < 50; i++) {
                List<CompletableFuture<?>> open = List.of(
                        one.publisher().publishAllAsync("order_a", events),
                        one.publisher().publishAllAsync("order_b", events),
                        other.publisher().publishAllAsync("order_b", reversed),
                        other.publisher().publishAllAsync("order_a", reversed));
                for (CompletableFuture<?> future : open) {
                    future.get(30, TimeUnit.SECONDS);
                }
            }
        }
        assertThat(read("order_a")).hasSize(4_000);
        assertThat(read("order_b")).hasSize(4_000);
        await().atMost(Duration.ofSeconds(10)) // a backend reports its counters when it ends
                .until(() -> number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%append_v1%'"
                                + " AND pid <> pg_backend_pid() AND state = 'active'")
                        == 0);
        assertThat(deadlocks()).isEqualTo(deadlocks);
    }

    private static long deadlocks() throws SQLException {
        return number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
    }

    @ParameterizedTest
    @ValueSource(strings = {"check", "trigger"})
    void publish_databaseRefusesSomeData_onlyThoseCallsFail(String how) throws Exception {
        String stream = "refuses_by_" + how;
        createStream(stream, 3);
        String table = "eventsql.events_" + stream;
        if (how.equals("check")) {
            execute("ALTER TABLE " + table + " ADD CONSTRAINT no_poison CHECK (value <> 'poison')");
        } else {
            execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                    + " IF NEW.value = 'poison' THEN RAISE EXCEPTION 'poison' USING ERRCODE = '22023'; END IF;"
                    + " RETURN NEW; END $$");
            execute("CREATE TRIGGER refuse BEFORE INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION refuse()");
        }
        Ledger ledger = new Ledger();
        List<Event> good = new ArrayList<>();
        List<CompletableFuture<EventPosition>> goodFutures = new ArrayList<>();
        List<CompletableFuture<?>> badFutures = new ArrayList<>();
        try (Connection holder = pool.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            // While the partitions are locked, the calls gather in one batch a lane.
            statement.execute("SELECT FROM eventsql.stream_partition FOR UPDATE");
            for (int i = 0; i < 900; i++) { // more than the segments that are ready hold
                if (i % 97 == 30) {
                    badFutures.add(eventSql.publisher().publishAsync(stream, Event.ofText("k" + i % 7, "poison")));
                    badFutures.add(eventSql.publisher().publishAsync(stream, Event.ofText("poison")));
                    badFutures.add(eventSql.publisher()
                            .publishAllAsync(
                                    stream, List.of(Event.ofText("k0", "with poison"), Event.ofText("k1", "poison"))));
                }
                Event event = ledger.next(i % 5 == 4 ? null : "k" + i % 7);
                good.add(event);
                goodFutures.add(eventSql.publisher().publishAsync(stream, event));
            }
            holder.commit();
        }
        for (CompletableFuture<?> bad : badFutures) {
            assertThatThrownBy(() -> bad.get(30, TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOf(EventNotStoredException.class)
                    .hasMessageContaining("poison");
        }
        for (int i = 0; i < good.size(); i++) {
            ledger.stored(good.get(i), goodFutures.get(i).get(30, TimeUnit.SECONDS));
        }
        List<Ledger.Stored> stored = read(stream);
        assertThat(stored).hasSize(good.size());
        ledger.verify(stored);
    }

    /**
     * The segment is missing when the append arrives, and there when the library looks: another process was faster. The
     * proxy holds the look until the other one has stored an event.
     */
    @Test
    void publish_anotherProcessAddsTheMissingSegmentFirst_isStored() throws Exception {
        createStream("segment_race", 1);
        append(1, Part.of("segment_race", 0, values(0, 100)));
        append(2, Part.of("segment_race", 0, values(100, 200)));
        try (FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
                HikariDataSource proxied = Pools.pool(eventsDb, proxy.jdbcUrl());
                EventSql slow = EventSql.builder(proxied)
                        .settings(Settings.builder()
                                .publishTimeout(Duration.ofSeconds(60))
                                .build())
                        .build()) {
            proxy.planRequests("heads_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
            CompletableFuture<EventPosition> late = slow.publisher().publishAsync("segment_race", Event.ofText("late"));
            await().atMost(Duration.ofSeconds(10)).until(() -> proxy.requests() == 1);
            assertThat(eventSql.publisher()
                            .publish("segment_race", Event.ofText("fast"))
                            .offset())
                    .isEqualTo(200);
            proxy.releaseHeld();
            assertThat(late.get(30, TimeUnit.SECONDS).offset()).isEqualTo(201);
        }
    }
}
