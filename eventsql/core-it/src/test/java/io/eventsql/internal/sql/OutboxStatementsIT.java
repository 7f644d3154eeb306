package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.OutboxTable.Row;
import io.eventsql.internal.sql.RelayTable.Polled;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.TransferredAppend.Target;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The rules that the statements of the outbox enforce: lease and fence, pages, and what a target accepts. */
@Timeout(60)
class OutboxStatementsIT {
    private static final double LEASE_SECONDS = 3_600;
    private static final UUID ONE = new UUID(1, 1);
    private static final UUID OTHER = new UUID(2, 2);
    private static final UUID PRODUCER = new UUID(3, 3);
    private static final UUID OUTBOX = new UUID(4, 4);

    private final SqlSchema schema = new SqlSchema("eventsql");
    private final RelayTable relay = new RelayTable(schema);
    private final OutboxTable outbox = new OutboxTable(schema);
    private final TransferredAppend transferred = new TransferredAppend(schema);
    private TestCluster cluster;
    private DataSource dataSource;
    private Database database;

    /** Creates the tables; no relay is running. */
    @BeforeEach
    void prepare() {
        cluster = TestCluster.ofShards(1);
        dataSource = cluster.dataSources().getFirst();
        database = new Database(dataSource, Duration.ofSeconds(10));
        try (EventSql eventSql = cluster.open()) {
            eventSql.createStream(StreamSpec.of("s").withPartitions(2));
        }
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private Polled poll(UUID holder, long epoch) throws SQLException {
        return database.call(c -> relay.poll(c, holder, epoch, LEASE_SECONDS, false));
    }

    private RelayLease take(UUID holder) throws SQLException {
        Long epoch = poll(holder, 0).epoch();
        return new RelayLease(holder, epoch == null ? -1 : epoch, 1_000);
    }

    private void expire() throws SQLException {
        Sql.execute(dataSource, "UPDATE eventsql.outbox_relay SET expires_at = clock_timestamp() - interval '1 ms'");
    }

    private static void assertFails(String state, ThrowingCallable call) {
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(call)
                .satisfies(e -> assertThat(SqlErrors.state(e)).isEqualTo(state));
    }

    private List<Row> takePage(RelayLease lease, int maxEvents, long maxBytes) throws SQLException {
        return database.transaction(c -> relay.take(c, lease, maxEvents, maxBytes))
                .rows();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private void write(String... values) throws SQLException {
        database.transaction(c -> {
            for (String value : values) {
                outbox.insert(c, "s", "key", bytes(value), null, 0);
            }
            return values;
        });
    }

    private static List<String> values(List<Row> rows) {
        return rows.stream()
                .map(row -> new String(row.value(), StandardCharsets.UTF_8))
                .toList();
    }

    @Test
    void poll_leaseOfAnotherProcess_isAcquiredOnlyAfterExpiryOrRelease() throws SQLException {
        RelayLease first = take(ONE);
        assertThat(poll(OTHER, 0).epoch()).isNull();
        expire();
        RelayLease second = take(OTHER);
        assertThat(second.epoch()).isEqualTo(first.epoch() + 1);
        assertThat(poll(ONE, first.epoch()).epoch()).isNull();
        database.call(c -> {
            relay.release(c, first); // has ended: does nothing
            return first;
        });
        assertThat(poll(ONE, first.epoch()).epoch()).isNull();
        database.call(c -> {
            relay.release(c, second);
            return second;
        });
        assertThat(take(ONE).epoch()).isEqualTo(second.epoch() + 1);
    }

    @Test
    void poll_byTheHolder_writesOnlyWhenTheRenewalIsDue() throws SQLException {
        RelayLease lease = take(ONE);
        String version = "SELECT xmin || ' ' || ctid FROM eventsql.outbox_relay";
        List<String> before = Sql.query(dataSource, version);
        for (int i = 0; i < 5; i++) {
            assertThat(poll(ONE, lease.epoch()).epoch()).isEqualTo(lease.epoch());
        }
        assertThat(Sql.query(dataSource, version)).isEqualTo(before);
        expire();
        assertThat(poll(ONE, lease.epoch()).epoch())
                .as("expired, but not acquired by another process")
                .isEqualTo(lease.epoch());
        assertThat(poll(OTHER, 0).epoch()).as("renewed").isNull();
    }

    @Test
    void poll_returnsWhetherEventsAreWaiting() throws SQLException {
        RelayLease lease = take(ONE);
        assertThat(poll(ONE, lease.epoch()).waiting()).isFalse();
        write("x");
        assertThat(poll(ONE, lease.epoch()).waiting()).isTrue();
        assertThat(poll(OTHER, 0).waiting()).as("without the lease").isFalse();
    }

    @Test
    void take_byAFormerHolder_failsAndTakesNothing() throws SQLException {
        write("x");
        RelayLease former = take(ONE);
        expire();
        RelayLease current = take(OTHER);
        assertFails(SqlErrors.RELAY_LOST, () -> takePage(former, 10, 1_000));
        assertFails(
                SqlErrors.RELAY_LOST,
                () -> database.transaction(c -> {
                    relay.lock(c, former);
                    return former;
                }));
        assertFails(
                SqlErrors.RELAY_LOST,
                () -> takePage(
                        new RelayLease(OTHER, current.epoch() - 1, 1_000), 10, 1_000)); // right holder, wrong epoch
        assertThat(values(takePage(current, 10, 1_000))).containsExactly("x");
    }

    /** After a failover the numbers of the former history must not be used again under the same producer. */
    @Test
    void take_incarnationHasChanged_requiresANewLeaseWithANewProducer() throws SQLException {
        String producer = "SELECT producer_id FROM eventsql.outbox_relay";
        RelayLease former = take(ONE);
        List<String> before = Sql.query(dataSource, producer);
        Sql.execute(dataSource, "UPDATE eventsql.outbox_relay SET incarnation = 'former'");
        assertFails(SqlErrors.RELAY_LOST, () -> takePage(former, 10, 1_000));
        Long epoch = poll(ONE, former.epoch()).epoch();
        assertThat(epoch).isEqualTo(former.epoch() + 1);
        assertThat(Sql.query(dataSource, producer)).isNotEqualTo(before);
        takePage(new RelayLease(ONE, former.epoch() + 1, 1_000), 10, 1_000);
    }

    @Test
    void take_page_isBoundedInEventsAndBytesAndOrderedById() throws SQLException {
        RelayLease lease = take(ONE);
        write("a", "b", "c");
        for (int ring = 3; ring >= 0; ring--) { // later ids in other tables of the ring
            Sql.execute(dataSource, "SELECT setval('eventsql.outbox_ring', " + ring + ")");
            write("ring " + ring, "r");
        }
        assertThat(values(takePage(lease, 2, 1_000))).containsExactly("a", "b");
        assertThat(values(takePage(lease, 100, 8)))
                .as("ends with the one that brings it to 8 bytes")
                .containsExactly("c", "ring 3", "r");
        assertThat(values(takePage(lease, 100, 1))).containsExactly("ring 2");
        assertThat(values(takePage(lease, 100, 1_000))).containsExactly("r", "ring 1", "r", "ring 0", "r");
        assertThat(takePage(lease, 100, 1_000)).isEmpty();
    }

    @Test
    void take_rolledBack_takesNothing() throws SQLException {
        RelayLease lease = take(ONE);
        write("a", "b");
        assertThatExceptionOfType(IllegalStateException.class)
                .isThrownBy(() -> database.transaction(c -> {
                    assertThat(relay.take(c, lease, 10, 1_000).rows()).hasSize(2);
                    throw new IllegalStateException("rolls back");
                }));
        assertThat(values(takePage(lease, 10, 1_000))).containsExactly("a", "b");
    }

    /** Sends the events numbered {@code from} to {@code to} to partition 0. */
    private void send(@Nullable Long after, long from, long to) throws SQLException {
        int count = Math.toIntExact(to - from + 1);
        byte[][] values = new byte[count][];
        for (int i = 0; i < count; i++) {
            values[i] = bytes(Long.toString(from + i));
        }
        var rows = new AppendStatement.Rows(
                new String[] {"s"},
                new int[] {1},
                new int[] {0},
                new int[] {count},
                new String[count],
                values,
                new String[count]);
        database.call(c -> transferred.execute(
                c, PRODUCER, MapFence.of(1), null, rows, Collections.singletonList(after), List.of(to), List.of()));
    }

    private List<String> stored() throws SQLException {
        return Sql.query(
                dataSource,
                "SELECT convert_from(value, 'UTF8') FROM eventsql.events_s ORDER BY partition, event_offset");
    }

    @Test
    void appendTransferred_notDirectlyAfterTheLastNumber_isRejected() throws SQLException {
        send(null, 5, 6);
        send(6L, 9, 9); // gaps are legal: the missing numbers belong to other partitions
        assertFails(SqlErrors.NOT_NEXT, () -> send(null, 5, 6)); // repeated
        assertFails(SqlErrors.NOT_NEXT, () -> send(6L, 9, 9));
        assertFails(SqlErrors.NOT_NEXT, () -> send(6L, 9, 12)); // cut differently: contains what is stored
        assertFails(SqlErrors.NOT_NEXT, () -> send(null, 5, 12));
        assertFails(SqlErrors.NOT_NEXT, () -> send(10L, 11, 12)); // not directly after the last number
        send(9L, 10, 12);
        assertThat(stored()).containsExactly("5", "6", "9", "10", "11", "12");
        Map<Target, Long> lastNumbers =
                database.call(c -> transferred.registerOutbox(c, null, OUTBOX, PRODUCER, new int[] {1}));
        assertThat(lastNumbers).isEqualTo(Map.of(new Target(1, 0), 12L));
    }

    @Test
    void appendTransferred_onePartitionNotNext_storesNothing() throws SQLException {
        send(null, 1, 1);
        var rows = new AppendStatement.Rows(
                new String[] {"s", "s"},
                new int[] {1, 1},
                new int[] {0, 1},
                new int[] {1, 1},
                new String[2],
                new byte[][] {bytes("2"), bytes("3")},
                new String[2]);
        assertFails(
                SqlErrors.NOT_NEXT,
                () -> database.call(c -> transferred.execute(
                        c,
                        PRODUCER,
                        MapFence.of(1),
                        null,
                        rows,
                        java.util.Arrays.asList(1L, 1L),
                        List.of(2L, 3L),
                        List.of())));
        assertThat(stored()).containsExactly("1");
    }

    @Test
    void appendTransferred_erasedOnTheirWay_areStoredAsErased() throws SQLException {
        var rows = new AppendStatement.Rows(
                new String[] {"s", "s"},
                new int[] {1, 1},
                new int[] {0, 1},
                new int[] {2, 2},
                new String[4],
                new byte[][] {bytes(""), bytes("2"), bytes("3"), bytes("")},
                new String[4]);
        database.call(c -> transferred.execute(
                c,
                PRODUCER,
                MapFence.of(1),
                null,
                rows,
                java.util.Arrays.asList(null, null),
                List.of(2L, 4L),
                List.of(1, 4)));
        assertThat(Sql.query(
                        dataSource,
                        "SELECT partition || ' ' || event_offset || ' ' || (erased_at IS NOT NULL) || ' ' ||"
                                + " coalesce(convert_from(value, 'UTF8'), 'no value') FROM eventsql.events_s"
                                + " ORDER BY partition, event_offset"))
                .containsExactly("0 0 true no value", "0 1 false 2", "1 0 false 3", "1 1 true no value");
    }

    @Test
    void deleteDeadProducers_producersOfOutboxes_areKept() throws SQLException {
        database.call(c -> transferred.registerOutbox(c, null, OUTBOX, PRODUCER, new int[] {1}));
        send(null, 1, 1);
        Sql.execute(
                dataSource,
                "INSERT INTO eventsql.producer_batch VALUES (1, 0, 10, 9, '" + OTHER + "', 1, now())", // the head
                "UPDATE eventsql.producer_batch SET published_at = now() - interval '2 days'");
        PartitionTable partitions = new PartitionTable(schema);
        database.call(c -> partitions.deleteDeadProducers(c, ONE));
        assertThat(Sql.query(
                        dataSource,
                        "SELECT batch_number FROM eventsql.producer_batch WHERE producer_id = '" + PRODUCER + "'"))
                .containsExactly("1");
    }

    private void register(UUID outbox, UUID producer) throws SQLException {
        database.call(c -> transferred.registerOutbox(c, null, outbox, producer, new int[] {1}));
    }

    private void letDaysPass(int days) throws SQLException {
        String past = " - interval '" + days + " days'";
        Sql.execute(
                dataSource,
                "UPDATE eventsql.producer_batch SET published_at = published_at" + past,
                "UPDATE eventsql.outbox_producer SET seen_at = seen_at" + past + ", ended_at = ended_at" + past);
    }

    private List<String> producersOfOutboxes() throws SQLException {
        database.call(c -> new PartitionTable(schema).deleteDeadProducers(c, ONE));
        return Sql.query(
                dataSource,
                "SELECT (SELECT count(*) FROM eventsql.producer_batch b WHERE b.producer_id = o.producer_id)"
                        + " || ' batches of ' || o.producer_id FROM eventsql.outbox_producer o ORDER BY o.producer_id");
    }

    /** Each restart of the outbox's database begins another producer. */
    @Test
    void deleteDeadProducers_formerProducerOfAnOutbox_isKeptForAMonth() throws SQLException {
        register(OUTBOX, PRODUCER);
        send(null, 1, 1);
        letDaysPass(100); // it may have events that are not sent yet, however old
        assertThat(producersOfOutboxes()).containsExactly("1 batches of " + PRODUCER);

        register(OUTBOX, OTHER);
        Sql.execute(
                dataSource,
                "INSERT INTO eventsql.producer_batch VALUES (1, 0, 10, 9, '" + OTHER + "', 1, now())"); // the head
        letDaysPass(29);
        assertThat(producersOfOutboxes())
                .containsExactlyInAnyOrder("1 batches of " + PRODUCER, "1 batches of " + OTHER);

        letDaysPass(2);
        assertThat(producersOfOutboxes()).containsExactly("1 batches of " + OTHER);
        assertThat(Sql.queryLong(
                        dataSource,
                        "SELECT count(*) FROM eventsql.producer_batch WHERE producer_id = '" + PRODUCER + "'"))
                .isZero();
    }

    /** The database of the outbox was restored, so it sends again with a producer that had ended. */
    @Test
    void deleteDeadProducers_formerProducerSendsAgain_isKept() throws SQLException {
        register(OUTBOX, PRODUCER);
        register(OUTBOX, OTHER);
        letDaysPass(100);
        register(OUTBOX, PRODUCER);

        assertThat(producersOfOutboxes())
                .containsExactlyInAnyOrder("0 batches of " + PRODUCER, "0 batches of " + OTHER);
    }

    @Test
    void deleteDeadProducers_producersOfOtherOutboxes_areKept() throws SQLException {
        register(OUTBOX, PRODUCER);
        register(UUID.randomUUID(), OTHER);
        letDaysPass(100);

        assertThat(producersOfOutboxes()).hasSize(2);
    }
}
