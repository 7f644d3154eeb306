package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.LeaseTable.HeartbeatReply;
import io.eventsql.internal.sql.LeaseTable.HeartbeatRequest;
import io.eventsql.internal.sql.LeaseTable.TakenPartition;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The statement that renews all members of a process: what it returns, and how long it takes with many consumers. */
@Timeout(300)
class HeartbeatIT {
    /** The number of consumers of {@link #heartbeat_manyConsumers_renewsAllInOneStatement}; each has ten partitions. */
    private static final int CONSUMERS = Integer.getInteger("eventsql.test.heartbeatConsumers", 30);
    /** The number of its measured heartbeats. */
    private static final int HEARTBEATS = Integer.getInteger("eventsql.test.heartbeats", 20);

    private static final int PARTITIONS = 10;
    private static final Duration LEASE = Duration.ofSeconds(30);

    private static TestCluster cluster;
    private static EventSql eventSql;
    private static DataSource database;
    private final SqlSchema schema = new SqlSchema("eventsql");
    private final LeaseTable leases = new LeaseTable(schema);

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open();
        database = cluster.dataSources().getFirst();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    /** Creates a stream with consumers; returns their ids. */
    private List<Integer> consumers(String stream, int partitions, int consumers) throws SQLException {
        eventSql.createStream(StreamSpec.of(stream).withPartitions(partitions));
        int streamId =
                (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'");
        List<Integer> ids = new ArrayList<>();
        try (Connection connection = database.getConnection()) {
            for (int i = 0; i < consumers; i++) {
                ids.add(new ConsumerTable(schema)
                        .register(connection, streamId, stream, "c" + i, StartPosition.EARLIEST));
            }
        }
        return ids;
    }

    private List<HeartbeatReply> heartbeat(HeartbeatRequest... requests) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return leases.heartbeat(connection, null, 0, LEASE, List.of(requests));
        }
    }

    private List<Integer> take(HeartbeatRequest member, int partitions) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return leases
                    .take(connection, null, member.consumerId(), member.memberId(), LEASE, partitions, List.of())
                    .stream()
                    .map(TakenPartition::partition)
                    .sorted()
                    .toList();
        }
    }

    private static HeartbeatRequest member(int consumerId, int maxPartitions, Integer... held) {
        return new HeartbeatRequest(consumerId, UUID.randomUUID(), "host/1/1", maxPartitions, List.of(held));
    }

    private static HeartbeatRequest holding(HeartbeatRequest member, List<Integer> held) {
        return new HeartbeatRequest(
                member.consumerId(), member.memberId(), member.name(), member.maxPartitions(), held);
    }

    @Test
    void heartbeat_membersOfSeveralConsumers_eachGetsItsOwnReply() throws SQLException {
        List<Integer> ids = consumers("replies", 4, 3);
        HeartbeatRequest alone = member(ids.get(0), 100);
        HeartbeatRequest one = member(ids.get(1), 100);
        HeartbeatRequest two = member(ids.get(1), 1);
        HeartbeatRequest deleted = member(1_000_000, 100);
        HeartbeatRequest closing = member(ids.get(2), 0);

        List<HeartbeatReply> replies = heartbeat(alone, one, deleted, two, closing);

        assertThat(replies).extracting(HeartbeatReply::member).containsExactlyInAnyOrder(0, 1, 3, 4);
        assertThat(replies)
                .allSatisfy(reply -> assertThat(reply.share())
                        .isEqualTo(
                                switch (reply.member()) {
                                    case 0 -> 4;
                                    case 1 -> 3;
                                    case 3 -> 1;
                                    default -> 0;
                                }))
                .allSatisfy(reply -> assertThat(reply.free()).isEqualTo(4))
                .allSatisfy(reply -> assertThat(reply.renewed()).isEmpty());
        assertThat(replies.stream()
                        .filter(reply -> reply.member() == 0)
                        .findFirst()
                        .orElseThrow()
                        .nextExpiryMs())
                .as("no other member")
                .isNull();
        assertThat(replies.stream()
                        .filter(reply -> reply.member() == 1)
                        .findFirst()
                        .orElseThrow()
                        .nextExpiryMs())
                .as("the other member may die before it takes its share")
                .isBetween(1L, LEASE.toMillis());
    }

    @Test
    void heartbeat_heldPartitions_areRenewedUnlessTheyAreLost() throws SQLException {
        int id = consumers("held", 4, 1).getFirst();
        HeartbeatRequest owner = member(id, 100);
        HeartbeatRequest other = member(id, 100);
        heartbeat(owner, other);
        assertThat(take(owner, 3)).hasSize(3);
        int taken = take(other, 1).getFirst();
        List<Integer> owned =
                IntStream.range(0, 4).filter(p -> p != taken).boxed().toList();
        Sql.execute(
                database,
                "UPDATE eventsql.consumer_partition SET expires_at = clock_timestamp() - interval '1 s'"
                        + " WHERE consumer_id = " + id + " AND partition = " + owned.get(0),
                "UPDATE eventsql.consumer_partition SET state = 'paused' WHERE consumer_id = " + id
                        + " AND partition = " + owned.get(1));

        // It believes to hold what the other has, and does not know that it has the last one.
        HeartbeatReply reply = heartbeat(holding(owner, List.of(owned.get(0), owned.get(1), taken)))
                .getFirst();

        assertThat(reply.renewed()).containsExactlyInAnyOrder(owned.get(0), owned.get(1));
        assertThat(reply.revoked()).containsExactly(owned.get(1));
        assertThat(reply.free()).as("the one whose take was not answered").isEqualTo(1);
        assertThat(reply.share()).as("half of three running ones").isBetween(1, 2);
        assertThat(reply.nextExpiryMs()).isBetween(1L, LEASE.toMillis());
        assertThat(Sql.queryLong(
                        database,
                        "SELECT count(*) FROM eventsql.consumer_partition WHERE consumer_id = " + id
                                + " AND expires_at > clock_timestamp() + interval '20 s'"))
                .isEqualTo(4);
    }

    @Test
    void heartbeat_eventsToRedrive_areReported() throws SQLException {
        List<Integer> ids = consumers("redriven", 4, 2);
        HeartbeatRequest owner = member(ids.getFirst(), 100);
        heartbeat(owner);
        List<Integer> held = take(owner, 4);
        Sql.execute(
                database,
                "INSERT INTO eventsql.parked_key (consumer_id, partition, key, redrive) VALUES (" + ids.get(0)
                        + ", 1, 'k', true), (" + ids.get(0) + ", 2, 'k', false), (" + ids.get(1) + ", 3, 'k', true)");

        assertThat(heartbeat(holding(owner, held)).getFirst().toRedrive()).isEqualTo(Set.of(1));
    }

    @Test
    void heartbeat_anyMaxima_sharesAreFair() throws SQLException {
        Random random = Seeds.random("heartbeat_anyMaxima_sharesAreFair");
        for (int round = 0; round < 20; round++) {
            int partitions = 1 + random.nextInt(8);
            int id = consumers("fair" + round, partitions, 1).getFirst();
            HeartbeatRequest[] members = IntStream.rangeClosed(0, random.nextInt(6))
                    .mapToObj(i -> member(id, random.nextInt(4) == 0 ? Integer.MAX_VALUE : random.nextInt(8)))
                    .toArray(HeartbeatRequest[]::new);
            int[] maxima = Arrays.stream(members)
                    .mapToInt(HeartbeatRequest::maxPartitions)
                    .toArray();

            int[] shares = new int[members.length];
            for (HeartbeatReply reply : heartbeat(members)) {
                shares[reply.member()] = reply.share();
            }
            assertFair(partitions, maxima, shares);

            for (int i = 0; i < members.length; i++) {
                assertThat(heartbeat(members[i]).getFirst().share())
                        .as("alone in its statement")
                        .isEqualTo(shares[i]);
            }
        }
    }

    private static void assertFair(int partitions, int[] maxima, int[] shares) {
        String all =
                partitions + " partitions, maxima " + Arrays.toString(maxima) + ", shares " + Arrays.toString(shares);
        long capacity = Arrays.stream(maxima)
                .mapToLong(max -> Math.min(max, partitions))
                .sum();
        assertThat(Arrays.stream(shares).sum()).as(all).isEqualTo((int) Math.min(partitions, capacity));
        int largest = Arrays.stream(shares).max().orElseThrow();
        for (int i = 0; i < shares.length; i++) {
            assertThat(shares[i]).as(all).isBetween(0, maxima[i]);
            assertThat(shares[i] >= largest - 1 || shares[i] == maxima[i])
                    .as(all)
                    .isTrue();
        }
    }

    @Test
    void leases_synchronousReplicaMissing_doNotWaitForIt() throws SQLException {
        EventsDb server = TestCluster.server();
        int consumer = consumers("replicated", 2, 1).getFirst();
        Sql.execute(
                server.adminDataSource(),
                "ALTER SYSTEM SET synchronous_standby_names = 'missing'",
                "SELECT pg_reload_conf()");
        try (Connection connection = database.getConnection()) {
            connection.setNetworkTimeout(Runnable::run, (int) TimeUnit.SECONDS.toMillis(10));
            HeartbeatRequest member = member(consumer, 100);
            for (int i = 0; i < 3; i++) { // the configuration is read within the first ones
                assertThat(leases.heartbeat(connection, null, 0, LEASE, List.of(member)))
                        .hasSize(1);
            }
            assertThat(server.show("synchronous_standby_names")).isEqualTo("missing");
            assertThat(leases.heartbeat(connection, null, 0, LEASE, List.of(member)))
                    .hasSize(1);
            assertThat(leases.take(connection, null, consumer, member.memberId(), LEASE, 2, List.of()))
                    .hasSize(2);
            leases.release(connection, consumer, member.memberId(), List.of(0, 1));
            assertThat(Sql.query(connection, "SHOW synchronous_commit")).containsExactly("on");
        } finally {
            Sql.execute(
                    server.adminDataSource(),
                    "ALTER SYSTEM RESET synchronous_standby_names",
                    "SELECT pg_reload_conf()");
        }
    }

    /** Measured by its own command, which CONTRIBUTING.md names. */
    @Test
    void heartbeat_manyConsumers_renewsAllInOneStatement() throws SQLException {
        List<HeartbeatRequest> requests = new ArrayList<>();
        for (int id : consumers("many", PARTITIONS, CONSUMERS)) {
            HeartbeatRequest member = member(id, 100);
            requests.add(holding(member, take(member, PARTITIONS)));
        }
        long[] nanos = new long[HEARTBEATS];
        try (Connection connection = database.getConnection()) {
            for (int i = -5; i < HEARTBEATS; i++) { // the first ones prepare
                long begun = System.nanoTime();
                List<HeartbeatReply> replies = leases.heartbeat(connection, null, 0, LEASE, requests);
                nanos[Math.max(i, 0)] = System.nanoTime() - begun;
                assertThat(replies)
                        .hasSize(CONSUMERS)
                        .allMatch(reply -> reply.renewed().size() == PARTITIONS
                                && reply.share() == PARTITIONS
                                && reply.free() == 0);
            }
        }
        Arrays.sort(nanos);
        System.out.printf(
                "MEASURED heartbeat of %d consumers with %d partitions each: median %.1f ms, p99 %.1f ms, max %.1f ms"
                        + " of %d%n",
                CONSUMERS,
                PARTITIONS,
                nanos[HEARTBEATS / 2] / 1e6,
                nanos[(int) Math.ceil(HEARTBEATS * 0.99) - 1] / 1e6,
                nanos[HEARTBEATS - 1] / 1e6,
                HEARTBEATS);
    }
}
