package io.eventsql.grow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.Settings;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.Pools;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a batch whose answer is lost is not stored again in another partition because the map changes in between.
 *
 * <p>Method: a proxy holds the response of an append, or the request, while another process grows the stream; then the connection
 * is cut.
 */
@Timeout(120)
class GrowthInDoubtIT {
    private static final String APPEND = "SELECT eventsql.append_";
    private static final int KEYS = 30;

    @Test
    void publish_mapChangesBetweenCommitAndLostAnswer_storesOnce() throws Exception {
        publishWhileGrowing("lost_answer", RequestFault.HOLD_RESPONSE, true);
    }

    @Test
    void publish_mapChangesBeforeTheRequestArrives_isRoutedAnew() throws Exception {
        publishWhileGrowing("late_request", RequestFault.HOLD_REQUEST, false);
    }

    /** Half of the calls are stored and half of them conflict: so they are after the map has changed, and are not decided anew. */
    @Test
    void publish_versionsExpectedAndMapChangesBeforeTheAnswer_outcomesAreThoseOfTheFirstAttempt() throws Exception {
        String stream = "expected";
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server());
                HikariDataSource direct = Pools.pool(TestCluster.server(), urlOf(database));
                EventSql grower = EventSql.builder(direct).build();
                EventSql publisher = EventSql.builder(database.pool())
                        .settings(Settings.builder()
                                .networkTimeout(Duration.ofSeconds(30))
                                .publishTimeout(Duration.ofSeconds(90))
                                .build())
                        .build()) {
            grower.createStream(TestStreams.of(stream).withPartitions(2).withKeyVersions());
            for (int i = 0; i < KEYS; i++) {
                publisher.publisher().publish(stream, Event.ofText("key-" + i, "1"), ExpectedVersion.NONE);
            }
            database.proxy().planRequests(APPEND, number -> number == 1 ? RequestFault.HOLD_RESPONSE : null);
            List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
            for (int i = 0; i < KEYS; i++) {
                calls.add(publisher
                        .publisher()
                        .publishAsync(stream, Event.ofText("key-" + i, "2"), ExpectedVersion.of(i % 2)));
            }
            await().atMost(Duration.ofSeconds(60)).until(() -> database.proxy().heldConnections() > 0);
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> Ledger.read(stream, List.of(direct)).size() > KEYS);
            grower.grow(stream, 3);
            grower.grow(stream, 8);
            database.proxy().cut();
            database.proxy().heal();
            for (int i = 0; i < KEYS; i++) {
                CompletableFuture<EventPosition> call = calls.get(i);
                if (i % 2 == 1) {
                    call.get(60, TimeUnit.SECONDS);
                } else {
                    assertThatThrownBy(() -> call.get(60, TimeUnit.SECONDS))
                            .cause()
                            .isInstanceOfSatisfying(
                                    VersionConflictException.class,
                                    e -> assertThat(e.actualVersion()).isEqualTo(1));
                }
                assertThat(publisher.keyVersion(stream, "key-" + i)).isEqualTo(1 + i % 2);
            }
            assertThat(Ledger.read(stream, List.of(direct))).hasSize(KEYS + KEYS / 2);
        }
    }

    private static void publishWhileGrowing(String stream, RequestFault fault, boolean storedBefore) throws Exception {
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server());
                HikariDataSource direct = Pools.pool(TestCluster.server(), urlOf(database));
                EventSql grower = EventSql.builder(direct).build();
                EventSql publisher = EventSql.builder(database.pool())
                        .settings(Settings.builder()
                                .networkTimeout(Duration.ofSeconds(30))
                                .publishTimeout(Duration.ofSeconds(90))
                                .build())
                        .build()) {
            grower.createStream(TestStreams.of(stream).withPartitions(1));
            publisher.publisher().publish(stream, Event.ofText("key-0", "key-0/0"));
            database.proxy().planRequests(APPEND, number -> number == 1 ? fault : null);
            List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
            for (int i = 0; i < KEYS; i++) {
                calls.add(publisher.publisher().publishAsync(stream, Event.ofText("key-" + i, "key-" + i + "/1")));
            }
            await().atMost(Duration.ofSeconds(60)).until(() -> database.proxy().heldConnections() > 0);
            if (storedBefore) {
                await().atMost(Duration.ofSeconds(60))
                        .until(() -> Ledger.read(stream, List.of(direct)).size() > 1);
            }
            grower.grow(stream, 8);
            for (int i = 0; i < KEYS; i++) { // these wait, and must not overtake
                calls.add(publisher.publisher().publishAsync(stream, Event.ofText("key-" + i, "key-" + i + "/2")));
            }
            if (storedBefore) {
                database.proxy().cut();
            }
            database.proxy().heal();
            for (CompletableFuture<EventPosition> call : calls) {
                call.get(60, TimeUnit.SECONDS);
            }
            List<Ledger.Stored> stored = Ledger.read(stream, List.of(direct));
            assertThat(stored).hasSize(2 * KEYS + 1);
            Ledger.assertGapless(stored);
            for (int i = 0; i < KEYS; i++) {
                String key = "key-" + i;
                assertThat(stored.stream()
                                .filter(event -> event.key().equals(key))
                                .map(Ledger.Stored::value))
                        .as("in order, once")
                        .endsWith(key + "/1", key + "/2")
                        .doesNotHaveDuplicates();
            }
            assertThat(stored).anyMatch(event -> event.partition() > 0);
        }
    }

    private static String urlOf(ProxiedDatabase database) throws Exception {
        try (var connection = database.direct().getConnection()) {
            return connection.getMetaData().getURL().replaceFirst("[?].*", "");
        }
    }
}
