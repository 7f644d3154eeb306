package io.eventsql.move;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a batch whose answer is lost is not stored again on another shard because its slots are closed in between, and no later call
 * of its keys is stored before it.
 *
 * <p>Method: a proxy holds the response of an append to the shard that gives its slots away, or the request, while another process
 * moves all of them; then the connection is cut.
 */
@Timeout(120)
class MoveInDoubtIT {
    private static final String APPEND = "SELECT eventsql.append_";
    private static final int KEYS = 30;

    @Test
    void publish_slotsAreClosedBetweenCommitAndLostAnswer_storesOnce() throws Exception {
        publishWhileMoving("lost_answer", RequestFault.HOLD_RESPONSE, true);
    }

    @Test
    void publish_slotsAreClosedBeforeTheRequestArrives_isStoredOnTheReceiver() throws Exception {
        publishWhileMoving("late_request", RequestFault.HOLD_REQUEST, false);
    }

    private static void publishWhileMoving(String stream, RequestFault fault, boolean storedBefore) throws Exception {
        try (EventsDb second = SharedServerDatabase.create();
                ProxiedDatabase giver = ProxiedDatabase.on(TestCluster.server());
                HikariDataSource direct = Pools.pool(TestCluster.server(), urlOf(giver.direct()));
                HikariDataSource receiver = Pools.pool(second)) {
            try (EventSql first = EventSql.builder(direct).build()) {
                first.createStream(TestStreams.of(stream).withPartitions(1));
            }
            List<DataSource> both = List.of(direct, receiver);
            try (EventSql mover = EventSql.builder(both).addShards().build();
                    EventSql publisher = EventSql.builder(List.of(giver.pool(), receiver))
                            .settings(Settings.builder()
                                    .networkTimeout(Duration.ofSeconds(30))
                                    .publishTimeout(Duration.ofSeconds(90))
                                    .build())
                            .build()) {
                publisher.publisher().publish(stream, Event.ofText("key-0", "key-0/0"));
                giver.proxy().planRequests(APPEND, number -> number == 1 ? fault : null);
                List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
                for (int i = 0; i < KEYS; i++) {
                    calls.add(publisher.publisher().publishAsync(stream, Event.ofText("key-" + i, "key-" + i + "/1")));
                }
                await().atMost(Duration.ofSeconds(60)).until(() -> giver.proxy().heldConnections() > 0);
                if (storedBefore) {
                    await().atMost(Duration.ofSeconds(60))
                            .until(() -> Ledger.read(stream, List.of(direct)).size() > 1);
                }
                int storedAtGiver = Ledger.read(stream, List.of(direct)).size();
                assertThat(mover.moveShards(List.of(1)).isDone()).isTrue();
                for (int i = 0; i < KEYS; i++) { // these wait, and must not overtake
                    calls.add(publisher.publisher().publishAsync(stream, Event.ofText("key-" + i, "key-" + i + "/2")));
                }
                if (storedBefore) {
                    giver.proxy().cut();
                }
                giver.proxy().heal();
                for (CompletableFuture<EventPosition> call : calls) {
                    call.get(60, TimeUnit.SECONDS);
                }
                assertThat(calls.getLast().get().shard()).isEqualTo(1);
                check(Ledger.read(stream, both), storedAtGiver);
            }
        }
    }

    private static void check(List<Ledger.Stored> stored, int atGiver) {
        assertThat(stored).hasSize(2 * KEYS + 1);
        assertThat(stored.stream().filter(event -> event.shard() == 0)).hasSize(atGiver);
        for (int i = 0; i < KEYS; i++) {
            String key = "key-" + i;
            List<Ledger.Stored> ofKey =
                    stored.stream().filter(event -> event.key().equals(key)).toList();
            assertThat(ofKey.stream().map(Ledger.Stored::value)).as("once").doesNotHaveDuplicates();
            assertThat(position(ofKey, key + "/1")).as("in order").isLessThan(position(ofKey, key + "/2"));
        }
    }

    /** Returns a number by which the events of a key are ordered: those of the giver come first. */
    private static long position(List<Ledger.Stored> stored, String value) {
        Ledger.Stored event = stored.stream()
                .filter(one -> one.value().equals(value))
                .findFirst()
                .orElseThrow();
        return event.shard() * 1_000_000L + event.offset();
    }

    private static String urlOf(DataSource database) throws Exception {
        try (var connection = database.getConnection()) {
            return connection.getMetaData().getURL().replaceFirst("[?].*", "");
        }
    }
}
