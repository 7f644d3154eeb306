package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.ReadFrom;
import io.eventsql.Settings;
import io.eventsql.eventsdb.StandbyMode;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.RedirectedDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.server.ReplicatedServer;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a consumer that reads from replicas handles the primary's history, whatever server is behind the replica's address.
 * Method: real standbys, one of which is promoted by mistake, or has received what the new primary has not.
 */
@Timeout(240)
class ReplicaHistoryIT {
    private static final String STREAM = "orders";
    private static final Settings SETTINGS = Settings.builder()
            .maxReplicaLag(Duration.ofSeconds(1))
            .lease(Duration.ofSeconds(4))
            .heartbeat(Duration.ofMillis(500))
            .build();

    private final ReplicatedServer server = new ReplicatedServer(StandbyMode.QUORUM);
    private final List<EventSql> opened = new ArrayList<>();
    private final Handled handled = new Handled();

    @AfterEach
    void closeAll() {
        opened.reversed().forEach(EventSql::close);
        server.close();
    }

    private EventSql open(DataSource primary, DataSource replica) {
        EventSql eventSql = EventSql.builder(primary)
                .replica(primary, replica)
                .settings(SETTINGS)
                .build();
        opened.add(eventSql);
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(1).withSegmentSize(100));
        return eventSql;
    }

    private static void awaitUsed(EventSql eventSql) {
        await().until(() -> eventSql.replicas().getFirst().isUsed());
    }

    private static void publish(EventSql eventSql, String prefix, int count) {
        eventSql.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(0, count)
                                .mapToObj(i -> Event.ofText("key", prefix + i))
                                .toList());
    }

    private void subscribe(EventSql eventSql) {
        eventSql.subscribe(ConsumerSpec.of(STREAM, "c").withReadFrom(ReadFrom.REPLICA), handled::add);
    }

    private void assertHandledIsStored(DataSource primary) throws SQLException {
        assertThat(handled.texts())
                .isEqualTo(Sql.query(
                        primary,
                        "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + STREAM
                                + " ORDER BY event_offset"));
    }

    @Test
    void consumer_addressLeadsToOtherStandbys_thenToOnePromotedByMistake_handlesThePrimarysEvents()
            throws SQLException {
        DataSource primary = server.pool();
        DataSource first = server.standbyPool(0);
        RedirectedDataSource replica = new RedirectedDataSource(first);
        EventSql eventSql = open(primary, replica);
        awaitUsed(eventSql);
        subscribe(eventSql);
        publish(eventSql, "first", 150);
        handled.awaitSize(150);

        server.pauseReplay(1); // so that it lacks what is handled next
        publish(eventSql, "second", 20);
        handled.awaitSize(170);
        replica.redirect(server.standbyPool(1));
        publish(eventSql, "third", 20);
        server.resumeReplay(1);
        handled.awaitSize(190);

        server.promote(0);
        try (EventSql mistaken = EventSql.builder(first).settings(SETTINGS).build()) {
            publish(mistaken, "mistaken", 40);
        }
        replica.redirect(first);
        publish(eventSql, "fourth", 20);
        handled.awaitSize(210);
        assertThat(eventSql.replicas().getFirst().problem()).contains("promoted on its own");

        replica.redirect(server.standbyPool(1));
        awaitUsed(eventSql);
        publish(eventSql, "fifth", 20);
        handled.awaitSize(230).assertOnceAndInOrder();
        assertHandledIsStored(primary);
    }

    /** The standby is as before: it has all that the former primary has acknowledged, and its address has not changed. */
    @Test
    void consumer_replicaHasWhatTheNewPrimaryHasLost_handlesThePrimarysEvents() throws SQLException {
        EventSql former = open(server.pool(), server.standbyPool(1));
        publish(former, "kept", 150);
        server.awaitReplayed(0);
        server.standby(0).stop();
        publish(former, "lost", 30);
        server.awaitReplayed(1);
        opened.removeLast().close();
        server.primary().crash();
        server.standby(0).restart();
        server.promote(0);

        DataSource primary = server.standbyPool(0);
        DataSource replica = server.standbyPool(1);
        EventSql eventSql = open(primary, replica);
        publish(eventSql, "new", 20);
        assertThat(Sql.query(replica, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + STREAM))
                .contains("lost0");
        subscribe(eventSql);
        handled.awaitSize(170).assertOnceAndInOrder();
        assertHandledIsStored(primary);
        assertThat(new HashSet<>(handled.texts())).doesNotContain("lost0");
        assertThat(eventSql.replicas().getFirst().problem()).contains("has not replayed anything");
    }
}
