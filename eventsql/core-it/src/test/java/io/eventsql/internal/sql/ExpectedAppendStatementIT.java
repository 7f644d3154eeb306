package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.internal.sql.AppendStatement.Rows;
import io.eventsql.internal.sql.ExpectedAppendStatement.Outcome;
import io.eventsql.internal.sql.ExpectedAppendStatement.Steps;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * Goal: a batch number has one outcome: a repeated batch gets the conflicts and offsets that it got first, also when nothing of
 * it was stored, and whatever was appended since; an older number is never stored. Method: direct calls of the function.
 */
class ExpectedAppendStatementIT extends AppendFixture {
    private static final ExpectedAppendStatement EXPECTED = new ExpectedAppendStatement(new SqlSchema("eventsql"));

    /** A call of one event of a key. */
    private record Call(int partition, String key, @Nullable Long expected) {}

    private static Call call(int partition, String key, long expected) {
        return new Call(partition, key, expected);
    }

    private static void create(String stream) {
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(100).withKeyVersions());
    }

    /** Appends calls, which are ordered by partition. */
    private static Outcome append(UUID producer, long number, String stream, Call... calls) throws SQLException {
        List<Integer> partitions = new ArrayList<>();
        List<Integer> counts = new ArrayList<>();
        List<String> keys = new ArrayList<>();
        List<Integer> keyGroups = new ArrayList<>();
        int[] steps = new int[calls.length];
        int[] stepKeys = new int[calls.length];
        int[] stepCounts = new int[calls.length];
        Long[] expected = new Long[calls.length];
        String[] eventKeys = new String[calls.length];
        byte[][] values = new byte[calls.length][];
        for (int i = 0; i < calls.length; i++) {
            if (partitions.isEmpty() || partitions.getLast() != calls[i].partition()) {
                partitions.add(calls[i].partition());
                counts.add(0);
            }
            counts.set(counts.size() - 1, counts.getLast() + 1);
            if (!keys.contains(calls[i].key())) {
                keys.add(calls[i].key());
                keyGroups.add(partitions.size());
            }
            steps[i] = i + 1;
            stepKeys[i] = keys.indexOf(calls[i].key()) + 1;
            stepCounts[i] = 1;
            expected[i] = calls[i].expected();
            eventKeys[i] = calls[i].key();
            values[i] = ("n" + number + "-" + i).getBytes(StandardCharsets.UTF_8);
        }
        int id = (int) number("SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'");
        int[] ids = new int[partitions.size()];
        String[] streams = new String[partitions.size()];
        Arrays.fill(ids, id);
        Arrays.fill(streams, stream);
        Rows rows = new Rows(streams, ids, ints(partitions), ints(counts), eventKeys, values, new String[calls.length]);
        try (Connection connection = pool.getConnection()) {
            return EXPECTED.execute(
                    connection,
                    producer,
                    number,
                    MapFence.of(MAP_VERSION),
                    null,
                    rows,
                    new Steps(steps, stepKeys, expected, stepCounts, ints(keyGroups), keys.toArray(new String[0])));
        }
    }

    private static int[] ints(List<Integer> values) {
        return values.stream().mapToInt(Integer::intValue).toArray();
    }

    private static void assertSame(Outcome repeated, Outcome first) {
        assertThat(repeated.firstOffsets()).containsExactly(first.firstOffsets());
        assertThat(repeated.conflicts()).containsExactly(first.conflicts());
    }

    private static long rowsOf(UUID producer) throws SQLException {
        return number("SELECT count(*) FROM eventsql.producer_batch WHERE producer_id = '" + producer + "'");
    }

    @Test
    void append_someCallsConflict_othersAreStoredAndRepeatedBatchHasSameOutcome() throws SQLException {
        create("mixed");
        Outcome first = append(
                producer,
                1,
                "mixed",
                call(0, "a", 0),
                call(0, "a", 0), // the one before has raised it
                call(0, "b", 5),
                call(0, "a", 1),
                call(1, "c", 0),
                call(1, "d", 3));
        assertThat(first.firstOffsets()).containsExactly(0, 0);
        assertThat(first.conflicts()).containsExactly(2, 1, 3, 0, 6, 0);
        append(UUID.randomUUID(), 1, "mixed", call(0, "b", 0), call(1, "d", 0));

        Outcome repeated = append(
                producer,
                1,
                "mixed",
                call(0, "a", 0),
                call(0, "a", 0),
                call(0, "b", 5),
                call(0, "a", 1),
                call(1, "c", 0),
                call(1, "d", 3));
        assertSame(repeated, first);
        assertThat(read("mixed")).hasSize(5);
        assertThat(number("SELECT sum(version) FROM eventsql.key_version v JOIN eventsql.stream s USING (stream_id)"
                        + " WHERE s.name = 'mixed'"))
                .isEqualTo(5);
    }

    /** The number is spent in the row of the head, if that is the producer's, and in a row of its own otherwise. */
    @Test
    void append_allCallsConflict_numberIsSpentAndProducerHasOneRow() throws SQLException {
        create("rejected");
        UUID other = UUID.randomUUID();
        Outcome byNewProducer = append(producer, 1, "rejected", call(0, "a", 7));
        assertThat(byNewProducer.firstOffsets()).containsExactly(0);
        assertThat(byNewProducer.conflicts()).containsExactly(1, 0);
        append(other, 1, "rejected", call(0, "a", 0));
        assertSame(append(producer, 1, "rejected", call(0, "a", 7)), byNewProducer);

        append(producer, 2, "rejected", call(0, "a", 1)); // the head
        Outcome atHead = append(producer, 3, "rejected", call(0, "a", 1));
        assertThat(atHead.conflicts()).containsExactly(1, 2);
        append(other, 2, "rejected", call(0, "a", 2));
        assertSame(append(producer, 3, "rejected", call(0, "a", 1)), atHead);
        Outcome belowHead = append(producer, 4, "rejected", call(0, "a", 1));
        assertThat(belowHead.conflicts()).containsExactly(1, 3);
        append(other, 3, "rejected", call(0, "a", 3));
        assertSame(append(producer, 4, "rejected", call(0, "a", 1)), belowHead);
        for (long stale : new long[] {1, 2, 3}) {
            assertRejected(SqlErrors.STALE_BATCH, () -> append(producer, stale, "rejected", call(0, "a", 4)));
        }
        assertThat(rowsOf(producer)).isEqualTo(1);
        assertThat(rowsOf(other)).isEqualTo(1);
        assertThat(append(producer, 5, "rejected", call(0, "a", 4)).firstOffsets())
                .containsExactly(4);
        assertThat(rowsOf(producer)).isEqualTo(1);
        assertThat(read("rejected")).hasSize(5);
    }

    @Test
    void append_onePartitionRejected_batchIsStoredInTheOther() throws SQLException {
        create("halved");
        Outcome first = append(producer, 1, "halved", call(0, "a", 1), call(1, "b", 0));
        assertThat(first.firstOffsets()).containsExactly(0, 0);
        assertThat(first.conflicts()).containsExactly(1, 0);
        assertSame(append(producer, 1, "halved", call(0, "a", 1), call(1, "b", 0)), first);
        assertThat(read("halved")).hasSize(1);
    }

    @Test
    void append_streamThatDoesNotCount_isRejected() throws SQLException {
        createStream("uncounted", 2);
        assertRejected(SqlErrors.NO_KEY_TRACKING, () -> append(producer, 1, "uncounted", call(0, "a", 0)));
    }
}
