package io.eventsql.fault;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.process.ConsumerGroup;
import io.eventsql.fixture.process.MemberProcess;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a member that is frozen past its lease, as in a long pause of its machine, does not block the others, and does no
 * harm when it resumes. Its commits are rejected, its handlers get no more events of partitions that have moved, its open
 * transactions are terminated and rolled back, and it rejoins without intervention.
 *
 * <p>Method: a process gets SIGSTOP at a known place in its handler or at its COMMIT (which a proxy holds), the others
 * continue, then it gets SIGCONT. Frozen transactions hold row locks that the next owner of the partition needs. If the role
 * of that member may not terminate them, the server does: in a handler after its {@code handlerTimeout}, at COMMIT after the
 * lease.
 */
@Timeout(300)
class FrozenMemberIT {
    private static final int PARTITIONS = 4;
    private static final long LEASE_MS = 2_500;
    /** From one event of a partition to the next. */
    private static final long TICK_MS = 160;

    private static final String OTHER_ROLE = "role_of_other_members";
    private static final String OTHER_PASSWORD = "only_for_this_test";

    private static EventsDb eventsDb;

    private final String stream = TestStreams.newName();

    @TempDir
    private Path folder;

    @BeforeAll
    static void createDatabase() throws Exception {
        eventsDb = SharedServerDatabase.create();
        Sql.execute(
                eventsDb.adminDataSource(), "CREATE ROLE " + OTHER_ROLE + " LOGIN PASSWORD '" + OTHER_PASSWORD + "'");
    }

    @AfterAll
    static void dropDatabase() throws Exception {
        eventsDb.close();
        Sql.execute(TestCluster.server().adminDataSource(), "DROP ROLE " + OTHER_ROLE);
    }

    private ConsumerGroup group(HandlerMode mode) throws Exception {
        return new ConsumerGroup(
                        eventsDb, folder, TestStreams.of(stream).withPartitions(PARTITIONS), Map.of("c", mode), TICK_MS)
                .with("leaseMs", LEASE_MS)
                .with("heartbeatMs", 500);
    }

    /** Returns the options of a member whose role may not terminate the transactions of the other members' role. */
    private static String[] otherRole() throws Exception {
        DataSource owner = eventsDb.dataSource();
        Sql.execute(
                owner,
                "GRANT USAGE ON SCHEMA eventsql TO " + OTHER_ROLE,
                "GRANT ALL ON ALL TABLES IN SCHEMA eventsql TO " + OTHER_ROLE,
                "GRANT ALL ON ALL SEQUENCES IN SCHEMA eventsql TO " + OTHER_ROLE,
                "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA eventsql TO " + OTHER_ROLE,
                "GRANT ALL ON public.effect, public.handled_key TO " + OTHER_ROLE);
        return new String[] {"user=" + OTHER_ROLE, "password=" + OTHER_PASSWORD, "migrate=0"};
    }

    @ParameterizedTest
    @MethodSource("io.eventsql.fixture.HandlerMode#testedPlain")
    void freeze_pastTheLease_othersTakeOverAndItsCommitsAreRejected(HandlerMode mode) throws Exception {
        try (ConsumerGroup group = group(mode)) {
            MemberProcess frozen = group.start("frozen");
            MemberProcess other = group.start("other");
            group.awaitFair(2);
            group.awaitHandlesMore(frozen);
            Set<Integer> held = group.partitionsOf(frozen);
            int position = frozen.position();
            String[] event = frozen.hold().split(" ", -1);
            frozen.freeze();
            group.awaitThat(
                    "all partitions are taken", () -> group.partitionsOf(other).size() == PARTITIONS);
            group.awaitHandlesMore(other);
            group.awaitThat(
                    "the held event is handled by another member",
                    () -> group.records().handledBy("other").stream()
                            .anyMatch(line -> line.value().equals(event[1])));
            frozen.go();
            frozen.thaw();
            for (int partition : held) {
                frozen.awaitLine("REVOKED c " + partition + " LOST", position);
            }
            group.awaitFair(2);
            group.awaitHandlesMore(frozen);
            group.finish();
        }
    }

    @ParameterizedTest
    @MethodSource("io.eventsql.fixture.HandlerMode#testedTransactional")
    void freeze_insideTransaction_nextOwnerTerminatesItAndEffectsHappenOnce(HandlerMode mode) throws Exception {
        try (ConsumerGroup group = group(mode)) {
            MemberProcess frozen = group.start("frozen");
            group.start("other");
            group.awaitFair(2);
            String[] event = frozen.hold().split(" ", -1); // it has written and holds a row lock on this key
            frozen.freeze();
            awaitEffect(group, event[1], "other");
            frozen.go();
            frozen.thaw();
            frozen.awaitLine("REVOKED c " + event[0] + " LOST");
            group.awaitFair(2);
            group.finish();
        }
    }

    private static void awaitEffect(ConsumerGroup group, String value, String process) {
        group.awaitThat(
                "the effect of the held event by " + process,
                () -> Sql.query(group.pool(), "SELECT process FROM public.effect WHERE value = ?", value)
                        .contains(process));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void freeze_betweenLastStatementAndCommit_effectsHappenOnce(boolean mayTerminate) throws Exception {
        try (FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
                ConsumerGroup group = group(HandlerMode.TRANSACTIONAL)) {
            MemberProcess frozen = group.start("frozen", "url=" + proxy.jdbcUrl());
            group.start("other", mayTerminate ? new String[0] : otherRole());
            group.awaitFair(2);
            proxy.planRequests(FaultProxy.COMMIT, number -> RequestFault.HOLD_REQUEST);
            group.awaitThat("a COMMIT is held", () -> proxy.heldConnections() > 0);
            Set<Integer> held = group.partitionsOf(frozen);
            frozen.freeze();
            long since = System.nanoTime();
            long before = group.load().published();
            group.awaitThat("more events are published", () -> group.load().published() > before + 40);
            for (int partition : held) {
                long handled = effects(group, partition, "other");
                group.awaitThat(
                        "partition " + partition + " is handled",
                        () -> effects(group, partition, "other") > handled + 5);
            }
            System.out.printf(
                    "MEASURED frozen before COMMIT, next owner %s terminate it: all partitions handled after %d ms, lease %d ms%n",
                    mayTerminate ? "may" : "may not", (System.nanoTime() - since) / 1_000_000, LEASE_MS);
            proxy.heal();
            frozen.thaw();
            group.awaitFair(2);
            group.finish();
        }
    }

    private static long effects(ConsumerGroup group, int partition, String process) throws Exception {
        return Long.parseLong(Sql.query(
                        group.pool(),
                        "SELECT count(*) FROM public.effect WHERE partition = ? AND process = ?",
                        partition,
                        process)
                .getFirst());
    }

    @Test
    void freeze_noMemberMayTerminateTransaction_serverTerminatesItAfterHandlerTimeout() throws Exception {
        try (ConsumerGroup group = group(HandlerMode.TRANSACTIONAL).with("handlerTimeoutMs", LEASE_MS)) {
            MemberProcess frozen = group.start("frozen");
            group.start("other", otherRole());
            group.awaitFair(2);
            String[] event = frozen.hold().split(" ", -1);
            frozen.freeze();
            long since = System.nanoTime();
            awaitEffect(group, event[1], "other");
            System.out.printf(
                    "MEASURED frozen in a transaction that no member may terminate: its event handled after %d ms,"
                            + " lease and handlerTimeout %d ms%n",
                    (System.nanoTime() - since) / 1_000_000, LEASE_MS);
            frozen.go();
            frozen.thaw();
            group.awaitFair(2);
            group.finish();
        }
    }
}
