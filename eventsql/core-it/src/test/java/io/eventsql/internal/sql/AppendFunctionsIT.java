package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.StreamSpec;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.internal.sql.AppendStatement.Rows;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: the function of a stream and the one that serves all streams can be called in any order: they store a batch once, and
 * give the same answers. Without its function, or the right to execute it, a stream is appended to as before.
 */
@Timeout(120)
class AppendFunctionsIT extends AppendFixture {
    private static final SqlSchema SCHEMA = new SqlSchema("eventsql");
    /** Never calls the function of a stream. */
    private static final AppendStatement FOR_ALL =
            new AppendStatement(SCHEMA, new AppendFunctions(SCHEMA, 0, System::nanoTime));

    private static int idOf(String stream) throws SQLException {
        return (int) number("SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'");
    }

    private static long functions(int streamId) throws SQLException {
        return number("SELECT count(*) FROM pg_proc WHERE proname = 'append_v2_" + streamId + "'");
    }

    /** Makes every append to the stream record the function that called it. */
    private static void recordCallers(String stream) throws SQLException {
        execute("CREATE TABLE " + stream + "_callers (stack text)");
        execute("CREATE FUNCTION " + stream
                + "_record() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE stack text; BEGIN"
                + " GET DIAGNOSTICS stack = PG_CONTEXT; INSERT INTO " + stream
                + "_callers VALUES (stack); RETURN NULL; END $$");
        execute("CREATE TRIGGER record AFTER INSERT ON eventsql.events_" + stream
                + " FOR EACH STATEMENT EXECUTE FUNCTION " + stream + "_record()");
    }

    private static long callers(String stream, String function) throws SQLException {
        return number("SELECT count(*) FROM " + stream + "_callers WHERE stack LIKE '%" + function + "(%'");
    }

    /** Texts that no event of a batch has are not sent. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3})
    void append_someTexts_areStoredWithTheirEvents(int texts) throws SQLException {
        String stream = "texts" + texts;
        createStream(stream, 2);
        Rows rows = rows(Part.of(stream, 0, "a", "b", "c"), Part.of(stream, 1, "d"));
        Rows onePartition = rows(Part.of(stream, 0, "e", "f", "g"));
        for (Rows each : List.of(rows, onePartition)) {
            if ((texts & 1) != 0) {
                each.keys()[1] = "key";
            }
            if ((texts & 2) != 0) {
                each.headers()[2] = "{\"x\":\"y\"}";
            }
        }
        try (Connection connection = pool.getConnection()) {
            APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows);
            APPEND.execute(connection, producer, 2, MapFence.of(MAP_VERSION), null, onePartition);
        }
        assertThat(number("SELECT count(*) FROM eventsql.events_" + stream)).isEqualTo(7);
        assertThat(number("SELECT count(*) FROM eventsql.events_" + stream
                        + " WHERE key = 'key' AND convert_from(value, 'UTF8') IN ('b', 'f')"))
                .isEqualTo((texts & 1) != 0 ? 2 : 0);
        assertThat(number("SELECT count(*) FROM eventsql.events_" + stream
                        + " WHERE headers ->> 'x' = 'y' AND convert_from(value, 'UTF8') IN ('c', 'g')"))
                .isEqualTo((texts & 2) != 0 ? 2 : 0);
        assertThat(number("SELECT count(key) + count(headers) FROM eventsql.events_" + stream))
                .isEqualTo(2 * Integer.bitCount(texts));
    }

    private static long[] appendBy(AppendStatement statement, UUID producer, long number, Part... parts)
            throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return statement.execute(connection, producer, number, MapFence.of(MAP_VERSION), null, rows(parts));
        }
    }

    @Test
    void append_batchOfOneStream_callsItsFunction() throws Exception {
        createStream("own", 2);
        createStream("other", 1);
        recordCallers("own");
        String own = "append_v2_" + idOf("own");

        append(1, Part.of("own", 0, "a"));
        append(2, Part.of("own", 0, "b"), Part.of("own", 1, "c"));
        assertThat(callers("own", own)).isEqualTo(2);
        append(3, Part.of("own", 0, "d"), Part.of("other", 0, "e"));
        assertThat(callers("own", "append_v1")).isEqualTo(1);
    }

    /**
     * Method: batches of one to three of four partitions are appended by one function and then, at random, repeated by any of
     * them, or sent under the number of the batch before, while another producer appends in between. A model holds the answers.
     */
    @Test
    void append_bothFunctionsInTurn_giveTheSameAnswers() throws Exception {
        createStream("turns", 4);
        Random random = Seeds.random("append_bothFunctionsInTurn_giveTheSameAnswers");
        long[] heads = new long[4];
        int[] last = new int[4]; // the producer's last number in each partition
        List<List<String>> stored = new ArrayList<>();
        IntStream.range(0, 4).forEach(i -> stored.add(new ArrayList<>()));
        for (int number = 1; number <= 120; number++) {
            int[] partitions = random.ints(0, 4)
                    .distinct()
                    .limit(1 + random.nextInt(3))
                    .sorted()
                    .toArray();
            Part[] parts = new Part[partitions.length];
            long[] expected = new long[partitions.length];
            for (int i = 0; i < parts.length; i++) {
                String[] values = values(0, 1 + random.nextInt(3));
                for (int v = 0; v < values.length; v++) {
                    values[v] = number + "-" + v;
                }
                parts[i] = Part.of("turns", partitions[i], values);
                expected[i] = heads[partitions[i]];
                heads[partitions[i]] += values.length;
                stored.get(partitions[i]).addAll(List.of(values));
            }
            for (int call = 0; call < 1 + random.nextInt(3); call++) {
                assertThat(appendBy(random.nextBoolean() ? APPEND : FOR_ALL, producer, number, parts))
                        .as("number %s, call %s", number, call)
                        .containsExactly(expected);
                if (random.nextInt(4) == 0) {
                    int partition = random.nextInt(4);
                    String other = "other " + number + " " + call;
                    assertThat(appendBy(
                                    random.nextBoolean() ? APPEND : FOR_ALL,
                                    UUID.randomUUID(),
                                    1,
                                    Part.of("turns", partition, other)))
                            .containsExactly(heads[partition]++);
                    stored.get(partition).add(other);
                }
            }
            for (int partition : partitions) {
                last[partition] = number;
            }
            AppendStatement any = random.nextBoolean() ? APPEND : FOR_ALL;
            int lower = number - 1;
            assertRejected(SqlErrors.STALE_BATCH, () -> appendBy(any, producer, lower, parts));
            if (parts.length == 3) {
                Part[] all = IntStream.range(0, 4)
                        .mapToObj(p -> Part.of("turns", p, "never stored"))
                        .toArray(Part[]::new);
                int same = number;
                assertRejected(SqlErrors.PARTIAL_BATCH, () -> appendBy(any, producer, same, all));
            }
        }
        List<Ledger.Stored> read = read("turns");
        Ledger.assertGapless(read);
        assertThat(read)
                .extracting(Ledger.Stored::value)
                .containsExactlyElementsOf(stored.stream().flatMap(List::stream).toList());
        assertThat(number("SELECT count(*) FROM eventsql.producer_batch WHERE producer_id = '" + producer + "'"))
                .as("rows of the producer")
                .isEqualTo(Arrays.stream(last).filter(n -> n > 0).count());
    }

    /** Goal: no deadlock and no gap. Method: threads append batches of the same partitions, each by another function. */
    @Test
    void append_bothFunctionsAtOnce_gaplessAndStoredOnce() throws Exception {
        createStream("at_once", 3);
        execute("SELECT eventsql.ensure_segments_v1(NULL, " + idOf("at_once")
                + ", p, 500) FROM generate_series(0, 2) p");
        List<CompletableFuture<Void>> writers = new ArrayList<>();
        for (int w = 0; w < 4; w++) {
            AppendStatement statement = w % 2 == 0 ? APPEND : FOR_ALL;
            String name = "w" + w;
            writers.add(async(() -> {
                UUID own = UUID.randomUUID();
                for (int n = 1; n <= 100; n++) {
                    Part[] parts = IntStream.range(0, n % 3 + 1)
                            .mapToObj(p -> Part.of("at_once", p, name))
                            .toArray(Part[]::new);
                    long[] bases = appendBy(statement, own, n, parts);
                    assertThat(appendBy(statement == APPEND ? FOR_ALL : APPEND, own, n, parts))
                            .containsExactly(bases);
                }
                return null;
            }));
        }
        for (CompletableFuture<Void> writer : writers) {
            writer.get(120, TimeUnit.SECONDS);
        }
        List<Ledger.Stored> stored = read("at_once");
        Ledger.assertGapless(stored);
        assertThat(stored).hasSize(4 * 200); // n % 3 + 1 partitions, for n from 1 to 100
    }

    /** Goal: kept plans follow new segments. Method: one connection appends through fifty small segments. */
    @Test
    void append_segmentsAreAddedAllTheTime_keptPlansUseThem() throws Exception {
        eventSql.createStream(StreamSpec.of("small").withPartitions(2).withSegmentSize(100));
        int id = idOf("small");
        int missing = 0;
        try (Connection connection = pool.getConnection()) {
            for (int n = 1; n <= 100; n++) {
                var batch =
                        rows(Part.of("small", 0, values(0, 50)), Part.of("small", 1, values(0, n % 2 == 0 ? 70 : 30)));
                for (int attempt = 0; ; attempt++) {
                    try {
                        APPEND.execute(connection, producer, n, MapFence.of(MAP_VERSION), null, batch);
                        break;
                    } catch (SQLException e) {
                        assertThat(SqlErrors.isMissingSegment(e)).as("%s", e).isTrue();
                        assertThat(attempt).isZero();
                        missing++;
                        execute("SELECT eventsql.ensure_segments_v1(NULL, " + id
                                + ", p, 1) FROM generate_series(0, 1) p");
                    }
                }
            }
        }
        assertThat(missing).isGreaterThan(20);
        assertThat(read("small")).hasSize(10_000);
        Ledger.assertGapless(read("small"));
    }

    @Test
    void append_functionIsDropped_continuesWithTheOther() throws Exception {
        createStream("dropped", 2);
        recordCallers("dropped");
        append(1, Part.of("dropped", 0, "a"));
        execute("DROP FUNCTION eventsql.append_v2_" + idOf("dropped"));

        assertThat(append(2, Part.of("dropped", 0, "b"))).containsExactly(1);
        assertThat(append(2, Part.of("dropped", 0, "b"))).containsExactly(1);
        assertThat(append(3, Part.of("dropped", 0, "c"), Part.of("dropped", 1, "d")))
                .containsExactly(2, 0);
        assertThat(callers("dropped", "append_v1")).isEqualTo(2);
    }

    /** The transaction is aborted, so the append cannot be repeated in it; the next one succeeds. */
    @Test
    void append_functionIsDropped_transactionIsRetried() throws Exception {
        createStream("in_transaction", 1);
        append(1, Part.of("in_transaction", 0, "a"));
        execute("DROP FUNCTION eventsql.append_v2_" + idOf("in_transaction"));
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            var batch = rows(Part.of("in_transaction", 0, "b"));
            assertThatThrownBy(() -> APPEND.execute(connection, producer, 2, MapFence.of(MAP_VERSION), null, batch))
                    .isInstanceOfSatisfying(
                            SQLException.class,
                            e -> assertThat(SqlErrors.classify(e)).isEqualTo(ErrorKind.ENVIRONMENT));
            connection.rollback();
            assertThat(APPEND.execute(connection, producer, 2, MapFence.of(MAP_VERSION), null, batch))
                    .containsExactly(1);
            connection.commit();
            connection.setAutoCommit(true);
        }
        assertThat(read("in_transaction")).hasSize(2);
    }

    /** As after rows of another database were loaded next to functions that were there before. */
    @Test
    void append_functionWritesToAnotherTable_isNotUsed() throws Exception {
        createStream("mine", 2);
        createStream("foreign", 2);
        execute("ALTER TABLE eventsql.stream DISABLE TRIGGER append_function");
        try {
            execute("UPDATE eventsql.stream SET table_name = 'x' WHERE name = 'foreign'");
            execute("UPDATE eventsql.stream SET table_name = 'events_foreign' WHERE name = 'mine'");
        } finally {
            execute("ALTER TABLE eventsql.stream ENABLE TRIGGER append_function");
        }
        assertThat(append(1, Part.of("mine", 0, "a"))).containsExactly(0);
        assertThat(append(2, Part.of("mine", 0, "b"), Part.of("mine", 1, "c"))).containsExactly(1, 0);
        assertThat(number("SELECT count(*) FROM eventsql.events_foreign")).isEqualTo(3);
        assertThat(number("SELECT count(*) FROM eventsql.events_mine")).isZero();
    }

    @Test
    void streamIsDeleted_itsFunctionGoes_andANewStreamHasItsOwn() throws Exception {
        createStream("again", 1);
        int former = idOf("again");
        append(1, Part.of("again", 0, "a"));
        assertThat(functions(former)).isOne();
        var batch = rows(Part.of("again", 0, "b"));

        eventSql.deleteStream("again", eventSql.previewDeleteStream("again").confirmation());

        assertThat(functions(former)).isZero();
        try (Connection connection = pool.getConnection()) {
            assertRejected(
                    SqlErrors.NO_PARTITION,
                    () -> APPEND.execute(connection, producer, 2, MapFence.of(MAP_VERSION), null, batch));
        }
        createStream("again", 1);
        recordCallers("again");
        assertThat(append(1, Part.of("again", 0, "c"))).containsExactly(0);
        assertThat(idOf("again")).isNotEqualTo(former);
        assertThat(callers("again", "append_v2_" + idOf("again"))).isOne();
    }

    @Test
    void isUsable_moreStreamsThanTheLimit_onlyThoseInUse() throws Exception {
        createStream("first", 1);
        createStream("second", 1);
        int first = idOf("first");
        int second = idOf("second");
        AtomicLong clock = new AtomicLong();
        AppendFunctions functions = new AppendFunctions(SCHEMA, 1, clock::get);
        try (Connection connection = pool.getConnection()) {
            assertThat(functions.isUsable(connection, "i", first)).isTrue();
            assertThat(functions.isUsable(connection, "i", second)).isFalse();
            clock.addAndGet(AppendFunctions.IDLE_NANOS + 1);
            assertThat(functions.isUsable(connection, "i", first)).isTrue();
            assertThat(functions.isUsable(connection, "i", second)).isFalse();
            clock.addAndGet(AppendFunctions.IDLE_NANOS + 1);
            assertThat(functions.isUsable(connection, "i", second)).isTrue();
            assertThat(functions.isUsable(connection, "i", first)).isFalse();
        }
    }

    @Test
    void isUsable_afterARejection_isAskedAgainLater() throws Exception {
        createStream("rejected", 1);
        int id = idOf("rejected");
        AtomicLong clock = new AtomicLong();
        AppendFunctions functions = new AppendFunctions(SCHEMA, 10, clock::get);
        try (Connection connection = pool.getConnection()) {
            assertThat(functions.isUsable(connection, "i", id)).isTrue();
            functions.reject("i", id);
            assertThat(functions.isUsable(connection, "i", id)).isFalse();
            assertThat(functions.isUsable(connection, "of another incarnation", id))
                    .isTrue();
            clock.addAndGet(AppendFunctions.RETRY_NANOS + 1);
            assertThat(functions.isUsable(connection, "i", id)).isTrue();
        }
    }
}
