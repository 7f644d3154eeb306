package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Retention;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.shard.Shards;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Compaction of streams that store rows, with what is the same for both storages. */
class CompactionIT extends CompactionContract {
    @Override
    Storage storage() {
        return Storage.ROWS;
    }

    /** Gaps are the same in the pages of both storages. */
    @ParameterizedTest
    @EnumSource(
            value = HandlerMode.class,
            names = {"BATCH", "KEYS", "TRANSACTIONAL", "TRANSACTIONAL_BATCH"})
    void consumer_ofEachMode_getsWhatIsLeft_andCommitsTheHead(HandlerMode mode) throws SQLException {
        assertConsumerGetsWhatIsLeft(mode);
    }

    @Test
    void batchHandlerFails_eventsAroundGapsAreHandledOneByOne() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(500, 50));
        fixture.compact();
        List<Long> stored = fixture.offsets(name, 0);
        for (boolean isTransactional : new boolean[] {false, true}) {
            Handled handled = new Handled();
            ConsumerSpec spec = ConsumerSpec.of(name, "failing" + isTransactional)
                    .withRetry(RetryPolicy.defaults()
                            .withMaxAttempts(2)
                            .withDelay(Duration.ofMillis(1), Duration.ofMillis(1)));
            try (Subscription ignored = isTransactional
                    ? eventSql.subscribeTransactionalBatch(spec, (events, connection) -> handle(events, handled))
                    : eventSql.subscribeBatch(spec, events -> handle(events, handled))) {
                await().atMost(Duration.ofSeconds(120))
                        .untilAsserted(() -> assertThat(eventSql.consumer(name, spec.name())
                                        .state()
                                        .getFirst()
                                        .nextOffset())
                                .isEqualTo(500));
            }
            assertThat(handled.events().stream().map(StoredEvent::offset)).containsExactlyElementsOf(stored);
        }
    }

    @Test
    void tombstone_abandonedConsumer_doesNotKeepIt() throws SQLException {
        eventSql.createStream(stream);
        long tombstone = fixture.appendTombstone(name, 0, "a");
        fixture.endSegment(stream);
        fixture.commit(name, "abandoned", 0);
        fixture.compact();
        fixture.age(name, Retention.DEFAULT_ABANDONED_AFTER.minusHours(1));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).contains(tombstone);
        fixture.age(name, Duration.ofHours(30));
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).doesNotContain(tombstone).isNotEmpty();
    }

    @Test
    void merge_transactionHasReadTheStreamBySql_publishingContinues() throws SQLException {
        eventSql.createStream(stream);
        fixture.publish(name, randomKeys(1_200, 20));
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + name);
            fixture.compact();
            fixture.publish(name, randomKeys(10, 20));
            assertThat(closedSegments()).hasSize(12);
            assertThat(Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + name))
                    .isNotEmpty();
            reader.rollback();
        }
        fixture.endPostponement();
        fixture.compact();
        assertThat(closedSegments()).hasSizeLessThan(3);
        assertThat(Sql.query(fixture.database, """
                        SELECT table_name FROM eventsql.segment g JOIN pg_class c ON c.relname = g.table_name
                        WHERE NOT 'autovacuum_freeze_min_age=0' = ANY (c.reloptions)""")).isEmpty();
    }

    @Test
    void rewrite_olderSnapshotIsOpen_isRepeatedLater() throws SQLException {
        StreamSpec large = stream.withSegmentSize(5_000);
        eventSql.createStream(large);
        for (int i = 0; i < 5; i++) {
            fixture.publish(name, randomKeys(1_000, 10));
        }
        fixture.publish(name, "k1");
        long before = size();
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT count(*) FROM eventsql.stream");
            fixture.compact();
            assertThat(size()).isGreaterThan(before / 2);
            reader.rollback();
        }
        fixture.endPostponement();
        fixture.compact();
        assertThat(size()).isLessThan(before / (storage() == Storage.ROWS ? 4 : 2));
    }

    /** A trigger of the application, a damaged block, a time limit of the role: whatever it is, other streams are compacted. */
    @Test
    void stepFailsInOneStream_othersAreCompacted_andItIsLogged() throws SQLException {
        eventSql.createStream(stream);
        StreamSpec other = CompactionFixture.newStream(storage());
        eventSql.createStream(other);
        for (String each : List.of(name, other.name())) {
            fixture.publish(each, Collections.nCopies(150, "k"));
        }
        Sql.execute(
                fixture.database,
                "CREATE FUNCTION refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$"
                        + " BEGIN RAISE EXCEPTION 'nothing is deleted here'; END $$",
                "CREATE TRIGGER refuse BEFORE DELETE OR UPDATE ON " + fixture.table(name)
                        + " FOR EACH ROW EXECUTE FUNCTION refuse_delete()");
        Shards shards = Shards.open(fixture.cluster.dataSources(), Settings.defaults());
        try (CapturedLog log = CapturedLog.ofRetaining()) {
            CompactionKeeper keeper = new CompactionKeeper(shards.get(0), Duration.ofMillis(10));
            await().atMost(Duration.ofMinutes(1)).untilAsserted(() -> {
                keeper.runStep();
                assertThat(fixture.offsets(other.name(), 0)).hasSize(51);
                assertThat(log.lines("nothing is deleted here")).isNotEmpty();
            });
        } finally {
            shards.close(System.nanoTime());
            Sql.execute(fixture.database, "DROP FUNCTION refuse_delete CASCADE");
        }
        assertThat(fixture.offsets(name, 0)).hasSize(150);
        fixture.compact();
        assertThat(fixture.offsets(name, 0)).hasSize(51);
    }
}
