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
    private MoveCluster cluster;

    @AfterEach
    void close() {
        cluster.close();
    }

    /** Creates the databases of a test, and the cluster over the first ones. */
    private void create(int databases, int shards) {
        cluster = new MoveCluster(databases);
        cluster.create(shards);
    }

    @Test
    void removeShard_keysHaveLeftAndItIsEmpty_needNotBeGivenAnyMore() {
        create(3, 3);
        EventSql three = cluster.open(3);
        publish(three, STREAM, 0, 120);
        assertRejected(three, 2, "keys belong to it");
        three.moveShards(List.of(0, 1));
        publish(three, STREAM, 120, 240);
        assertRejected(three, 2, "stream moving has ");
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

    private static void assertRejected(EventSql eventSql, int shard, String reason) {
        assertThatThrownBy(() -> eventSql.removeShard(shard))
                .isInstanceOf(EventSqlException.class)
                .hasMessageContaining("cannot be removed yet: ")
                .hasMessageContaining(reason);
    }

    @Test
    void removeShard_scheduledEventsWaitThere_isRejected() {
        create(2, 2);
        EventSql two = cluster.open(2);
        Instant later = Instant.now().plusSeconds(3_600);
        for (int i = 0; i < 30; i++) {
            two.publisher().schedule(STREAM, Event.ofText("key-" + i, Integer.toString(i)), later);
        }
        two.moveShards(List.of(0));
        assertRejected(two, 1, "it has scheduled events");
    }

    /** Events of the shard that is to be removed may have come after others that are still stored. */
    @Test
    void removeShard_itHadReceivedKeysOfAShardWithEvents_isRejected() {
        create(2, 1);
        EventSql two = cluster.open(2);
        publish(two, STREAM, 0, 60);
        two.moveShards(List.of(0, 1));
        two.moveShards(List.of(0));
        assertRejected(two, 1, "still has events of stream moving");
    }

    @Test
    void removeShard_noKeysHaveBelongedToIt_isRemovedAtOnce() {
        create(3, 2);
        cluster.open(2); // it need not be given before, either
        cluster.open(3).removeShard(2);
        EventSql two = cluster.open(2);
        assertThat(two.moveShards(List.of(0)).isDone()).isTrue();
        assertThatThrownBy(() -> two.removeShard(7)).isInstanceOf(InvalidInputException.class);
    }

    /** It may be the application's own database, whose outbox is still needed. */
    @Test
    void removeShard_itsDatabaseIsGivenAsAnOutbox_isRelayed() throws SQLException {
        create(2, 2);
        try (EventSql two = MoveCluster.builder(cluster.dataSources()).build()) {
            publish(two, STREAM, 0, 120);
            two.moveShards(List.of(0));
            two.clear(STREAM, two.previewClear(STREAM).confirmation()); // as retention does
            two.removeShard(1);
        }
        assertOutboxOfSecondDatabaseIsRelayed();
    }

    @Test
    void open_databaseOfASpareShardIsGivenAsAnOutbox_isRelayed() throws SQLException {
        create(2, 1);
        assertOutboxOfSecondDatabaseIsRelayed();
    }

    private void assertOutboxOfSecondDatabaseIsRelayed() throws SQLException {
        DataSource application = cluster.dataSources().get(1);
        Handled handled = new Handled();
        try (EventSql one = MoveCluster.builder(cluster.dataSources().subList(0, 1))
                        .outbox(application)
                        .build();
                Subscription member = one.subscribe(ConsumerSpec.of(STREAM, "of_outbox"), handled::add)) {
            assertThat(one.outbox().backlogs()).hasSize(2);
            try (Connection transaction = application.getConnection()) {
                transaction.setAutoCommit(false);
                for (int i = 0; i < 20; i++) {
                    one.outbox().publish(transaction, STREAM, Event.ofText("key-" + i, Integer.toString(i)));
                }
                transaction.commit();
            }
            one.outbox().committed();
            handled.awaitSize(20);
        }
        assertHandledInOrder(handled, 0, 20);
    }
}
