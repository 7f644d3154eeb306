package io.eventsql.move;

import static io.eventsql.move.MoveCluster.STREAM;
import static io.eventsql.move.MoveCluster.assertHandledInOrder;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.ShardIdentityException;
import io.eventsql.ShardInfo;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: a shard that keys have left can be read until it is empty, and only then be removed. */
@Timeout(120)
class RemoveShardIT {
    private final MoveCluster cluster = new MoveCluster(3);

    @AfterEach
    void close() {
        cluster.close();
    }

    @Test
    void removeShard_keysHaveLeftAndItIsEmpty_needNotBeGivenAnyMore() {
        cluster.create(3);
        EventSql three = cluster.open(3);
        publish(three, STREAM, 0, 120);
        assertRejected(three, "keys belong to it");
        three.moveShards(List.of(0, 1));
        publish(three, STREAM, 120, 240);
        assertRejected(three, "stream moving has ");
        assertThatThrownBy(() -> cluster.open(2))
                .isInstanceOf(ShardIdentityException.class)
                .hasMessageContaining("all shards that have events");
        Handled handled = new Handled();
        try (Subscription member = cluster.open(3).subscribe(ConsumerSpec.of(STREAM, "reads_all"), handled::add)) {
            handled.awaitSize(240);
        }
        assertHandledInOrder(handled, 0, 240);

        three.clear(STREAM, three.previewClear(STREAM).confirmation()); // as retention does
        three.removeShard(2);
        three.removeShard(2); // does nothing
        assertThatThrownBy(() -> three.moveShards(List.of(0, 1, 2)))
                .isInstanceOf(InvalidInputException.class)
                .hasMessageContaining("removed");
        EventSql two = cluster.open(2);
        assertThat(two.moveShards(List.of(1)).isDone()).isTrue();
        publish(two, STREAM, 240, 360);
        Handled later = new Handled();
        try (Subscription member = two.subscribe(ConsumerSpec.of(STREAM, "later"), later::add)) {
            later.awaitSize(120);
        }
        assertHandledInOrder(later, 240, 360);
        EventSql stillGiven = cluster.open(3);
        assertThat(stillGiven.shards()).extracting(ShardInfo::number).containsExactly(0, 1);
    }

    private static void assertRejected(EventSql eventSql, String reason) {
        assertThatThrownBy(() -> eventSql.removeShard(2))
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining("cannot be removed yet: ")
                .hasMessageContaining(reason);
    }

    @Test
    void removeShard_scheduledEventsWaitThere_isRejected() {
        cluster.create(3);
        EventSql three = cluster.open(3);
        Instant later = Instant.now().plusSeconds(3_600);
        for (int i = 0; i < 30; i++) {
            three.publisher().schedule(STREAM, Event.ofText("key-" + i, Integer.toString(i)), later);
        }
        three.moveShards(List.of(0, 1));
        assertRejected(three, "it has scheduled events");
    }

    /** Events of the shard that is to be removed may have come after others that are still stored. */
    @Test
    void removeShard_itHadReceivedKeysOfAShardWithEvents_isRejected() {
        cluster.create(2);
        EventSql three = cluster.open(3);
        publish(three, STREAM, 0, 60);
        three.moveShards(List.of(0, 1, 2));
        three.moveShards(List.of(0, 1));
        assertRejected(three, "still has events of stream moving");
    }

    @Test
    void removeShard_noKeysHaveBelongedToIt_isRemovedAtOnce() {
        cluster.create(2);
        cluster.open(2); // it need not be given before, either
        cluster.open(3).removeShard(2);
        EventSql two = cluster.open(2);
        assertThat(two.moveShards(List.of(0)).isDone()).isTrue();
        assertThatThrownBy(() -> two.removeShard(7)).isInstanceOf(InvalidInputException.class);
    }

    /** It may be the application's own database, whose outbox is still needed. */
    @Test
    void removeShard_itsDatabaseIsGivenAsAnOutbox_isRelayed() throws SQLException {
        cluster.create(3);
        try (EventSql three = MoveCluster.builder(cluster.dataSources()).build()) {
            publish(three, STREAM, 0, 120);
            three.moveShards(List.of(0, 1));
            three.clear(STREAM, three.previewClear(STREAM).confirmation()); // as retention does
            three.removeShard(2);
        }
        assertOutboxOfDatabase2IsRelayed();
    }

    @Test
    void open_databaseOfASpareShardIsGivenAsAnOutbox_isRelayed() throws SQLException {
        cluster.create(2);
        assertOutboxOfDatabase2IsRelayed();
    }

    private void assertOutboxOfDatabase2IsRelayed() throws SQLException {
        DataSource application = cluster.dataSources().get(2);
        Handled handled = new Handled();
        try (EventSql two = MoveCluster.builder(cluster.dataSources().subList(0, 2))
                        .outbox(application)
                        .build();
                Subscription member = two.subscribe(ConsumerSpec.of(STREAM, "of_outbox"), handled::add)) {
            assertThat(two.outbox().backlogs()).hasSize(3);
            try (Connection transaction = application.getConnection()) {
                transaction.setAutoCommit(false);
                for (int i = 0; i < 20; i++) {
                    two.outbox().publish(transaction, STREAM, Event.ofText("key-" + i, Integer.toString(i)));
                }
                transaction.commit();
            }
            two.outbox().committed();
            handled.awaitSize(20);
        }
        assertHandledInOrder(handled, 0, 20);
    }
}
