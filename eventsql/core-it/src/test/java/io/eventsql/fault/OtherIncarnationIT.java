package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.LostHistory;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: whichever statement of a member is the first one that is rejected after a restart of the database, nothing that
 * was handled is repeated, nothing is reported as lost, and nothing is released that is not committed.
 *
 * <p>Method: the database gets another incarnation by a statement, so no connection breaks, and the statement under
 * test is the first one that is rejected. A proxy holds what the member reads before it continues.
 */
@Timeout(300)
class OtherIncarnationIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final String STREAM = "orders";
    private static final String BAD = "bad";
    /** Heartbeats are rare compared with what a handler does last, and no lease expires. */
    private static final Settings SETTINGS = Settings.builder()
            .networkTimeout(Duration.ofSeconds(30))
            .lease(Duration.ofSeconds(60))
            .heartbeat(Duration.ofMillis(500))
            .pollInterval(Duration.ofMinutes(1))
            .build();

    private final LostHistory lost = new LostHistory();
    private final Handled handled = new Handled();
    private final AtomicInteger failures = new AtomicInteger();
    private ProxiedDatabase database;
    private HikariDataSource direct;
    private EventSql control;
    private EventSql eventSql;
    private CapturedLog log;

    @BeforeEach
    void open() throws SQLException {
        log = CapturedLog.ofConsuming();
        database = ProxiedDatabase.on(TestCluster.server());
        direct = TestCluster.pool(database.direct());
        control = EventSql.builder(direct).build();
        eventSql = EventSql.builder(database.pool())
                .settings(SETTINGS)
                .listener(lost)
                .build();
    }

    @AfterEach
    void close() {
        database.proxy().heal();
        eventSql.close();
        control.close();
        direct.close();
        database.close();
        log.close();
    }

    private void createStream() {
        control.createStream(TestStreams.of(STREAM).withPartitions(1));
    }

    /** A consumer that commits nothing by itself as long as a test lasts. */
    private static ConsumerSpec rarelyCommitting() {
        return ConsumerSpec.of(STREAM, "c")
                .withCommitInterval(Duration.ofMinutes(1))
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
    }

    private void publish(String... texts) {
        control.publisher()
                .publishAll(
                        STREAM,
                        Stream.of(texts)
                                .map(text -> Event.ofText("key-" + text, text))
                                .toList());
    }

    /** As a restart does. */
    private void changeIncarnation() throws SQLException {
        Sql.execute(direct, "SELECT eventsql.declare_restored('test')");
    }

    private PartitionState state() {
        return control.consumer(STREAM, "c").state().getFirst();
    }

    /** Fails for good after a change of the incarnation, in which the member continues when the proxy is healed. */
    private void failAfterChange(StoredEvent event) throws SQLException {
        if (!event.text().equals(BAD)) {
            handled.add(event);
            return;
        }
        failures.incrementAndGet();
        database.proxy().planRequests("heads_v1", number -> RequestFault.HOLD_REQUEST);
        changeIncarnation();
        throw new IllegalStateException("cannot handle it");
    }

    private void letMembersContinue() {
        await().atMost(DEADLINE).until(() -> database.proxy().heldConnections() > 0);
        database.proxy().heal();
    }

    /** Shown before the fix: the partition was reported as lost, and its events were handled again. */
    @ParameterizedTest
    @EnumSource(names = {"DEAD_LETTER", "PARK_KEY"})
    void store_incarnationHasChanged_isStoredOnceAndNothingIsRepeated(FailurePolicy policy) throws Exception {
        createStream();
        eventSql.subscribe(rarelyCommitting().withFailurePolicy(policy), this::failAfterChange);
        publish("0", "1", "2", "3", "4", BAD, "after");
        letMembersContinue();
        handled.awaitSize(6);
        assertThat(handled.texts()).containsExactly("0", "1", "2", "3", "4", "after");
        assertThat(failures).hasValue(1);
        assertThat(control.consumer(STREAM, "c").parkedEvents(10))
                .extracting(ParkedEvent::event)
                .extracting(StoredEvent::text)
                .containsExactly(BAD);
        assertThat(Sql.queryLong(direct, "SELECT count(*) FROM eventsql.events_" + STREAM + "_dead_letter"))
                .isEqualTo(policy == FailurePolicy.DEAD_LETTER ? 1 : 0);
        assertThat(lost.revoked()).containsExactly(Reason.HISTORY_CHANGED);
        assertThat(lost.consumed()).isEmpty();
        assertThat(log.lines("Lost")).isEmpty();
    }

    @Test
    void stop_incarnationHasChanged_isStoredWithWhatWasHandledBefore() throws Exception {
        createStream();
        eventSql.subscribe(rarelyCommitting(), this::failAfterChange);
        publish("0", "1", "2", "3", "4", BAD, "after");
        letMembersContinue();
        await().atMost(DEADLINE).until(() -> !lost.revoked().isEmpty());
        assertThat(lost.revoked()).containsExactly(Reason.STOPPED);
        assertThat(state().status()).isEqualTo(Status.STOPPED);
        assertThat(state().nextOffset()).isEqualTo(5);
        assertThat(handled.texts()).containsExactly("0", "1", "2", "3", "4");
        assertThat(lost.consumed()).isEmpty();
    }

    /** Shown before the fix: the partition was released without its last commit, and its events were handled again. */
    @Test
    void release_incarnationHasChanged_handledEventsAreCommittedBefore() throws Exception {
        createStream();
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        eventSql.subscribe(rarelyCommitting(), event -> {
            handled.add(event);
            if (event.text().equals("2")) {
                begun.countDown();
                released.await();
                changeIncarnation();
            }
        });
        publish("0", "1", "2");
        begun.await();
        control.consumer(STREAM, "c").pause();
        awaitHeartbeats(3); // the reply to the second one was applied before: the partition drains
        released.countDown();
        await().atMost(DEADLINE).until(() -> !lost.revoked().isEmpty());
        assertThat(lost.revoked()).containsExactly(Reason.HISTORY_CHANGED);
        assertThat(state().nextOffset()).isEqualTo(3);

        control.consumer(STREAM, "c").resume();
        publish("3");
        handled.awaitSize(4);
        assertThat(handled.texts()).containsExactly("0", "1", "2", "3");
        assertThat(lost.consumed()).isEmpty();
    }

    private void awaitHeartbeats(int heartbeats) throws SQLException {
        for (int i = 0; i < heartbeats; i++) {
            long before = leaseEndMicros();
            await().atMost(DEADLINE).until(() -> leaseEndMicros() > before);
        }
    }

    private long leaseEndMicros() throws SQLException {
        return Sql.queryLong(
                direct,
                "SELECT (extract(epoch FROM max(expires_at)) * 1000000)::bigint FROM eventsql.consumer_partition");
    }

    /** Shown before the fix: the member left, and reported a release, although the handled event was not committed. */
    @Test
    void close_incarnationHasChanged_isNotReportedAsRelease() throws Exception {
        createStream();
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        Subscription member = eventSql.subscribe(rarelyCommitting(), event -> {
            begun.countDown();
            released.await();
            changeIncarnation();
        });
        publish("0");
        begun.await();
        CompletableFuture<Boolean> closing =
                CompletableFuture.supplyAsync(() -> member.close(DEADLINE), Thread::startVirtualThread);
        await().atMost(DEADLINE).until(() -> !member.isRunning());
        released.countDown();
        assertThat(closing.join()).isTrue();
        assertThat(lost.revoked()).containsExactly(Reason.HISTORY_CHANGED);
    }

    /** Shown before the fix: the commit, and with it the recovery, was repeated 20 times a second. */
    @Test
    void commit_streamHasVanished_isNotRepeatedWhileTheMemberCannotContinue() throws Exception {
        LogicalBackup backup = LogicalBackup.take(direct);
        createStream();
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch released = new CountDownLatch(1);
        eventSql.subscribe(ConsumerSpec.of(STREAM, "c"), event -> {
            begun.countDown();
            released.await();
        });
        publish("0");
        begun.await();
        backup.restore(direct);
        await().atMost(DEADLINE).until(() -> !log.lines("cannot continue").isEmpty());
        database.proxy().planRequests("commit_offsets_v2", number -> null);
        released.countDown();
        await().atMost(DEADLINE).until(() -> database.proxy().requests() > 0);
        await().during(Duration.ofSeconds(2)).until(() -> database.proxy().requests() <= 2);
    }
}
