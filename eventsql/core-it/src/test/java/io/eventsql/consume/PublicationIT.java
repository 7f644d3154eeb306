package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: the library works in a database with a publication of all tables, as tools that follow the WAL create it. Method: the server
 * checks for each statement whether rows can be identified, whatever {@code wal_level} is.
 */
@Timeout(120)
class PublicationIT extends ConsumerFixture {
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    @BeforeAll
    void createPublication() throws SQLException {
        Sql.execute(
                Roles.admin(database().unwrap(PGSimpleDataSource.class)),
                "CREATE PUBLICATION everything FOR ALL TABLES");
    }

    private DataSource database() {
        return cluster.dataSources().getFirst();
    }

    @Test
    void parkedKeys_areRedrivenAndDeletedWithTheirConsumer() throws SQLException {
        String stream = newStream(1);
        ConsumerSpec parking = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        AtomicBoolean fails = new AtomicBoolean(true);
        Handled handled = new Handled();
        try (EventSql process = cluster.open()) {
            process.subscribe(parking, event -> {
                if (fails.get()) {
                    throw new IllegalStateException("cannot handle " + event.text());
                }
                handled.add(event);
            });
            publishKeys(stream, "a", "a", "b");
            awaitLag(stream, 0);
            fails.set(false);
            assertThat(process.consumer(stream, "c").redrive()).isEqualTo(3);
            await().atMost(DEADLINE).until(() -> state(stream).getFirst().parkedKeys() == 0);
            assertThat(handled.texts()).containsExactlyInAnyOrder("a1", "a2", "b1");
            fails.set(true);
            publishKeys(stream, "c");
            awaitLag(stream, 0);
        }
        assertThat(state(stream).getFirst().parkedKeys()).isEqualTo(1);
        eventSql.consumer(stream, "c").delete();
        assertThat(Sql.queryLong(database(), "SELECT count(*) FROM eventsql.parked_key"))
                .isZero();
    }

    /** Twice: with tables of this release, and as an earlier one has created them. */
    @Test
    void aggregate_isRebuiltAndItsFormerGenerationDeleted() throws SQLException {
        String stream = newStream(1);
        ContinuousAggregateSpec spec = ContinuousAggregateSpec.of(TestStreams.newName(), stream)
                .withMeasure("n", event -> Integer.valueOf(event.text()));
        String view = "\"" + spec.name() + "\"";
        String partials = "\"" + spec.name() + "__partials\"";
        String generations = "SELECT DISTINCT generation FROM " + partials;
        publish(stream, 0, 20, 3);
        for (int time = 0; time < 2; time++) {
            try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(spec)) {
                await().atMost(DEADLINE)
                        .untilAsserted(() -> assertThat(Sql.query(database(), "SELECT sum(events) FROM " + view))
                                .containsExactly("20"));
                String former = Sql.query(database(), generations).getFirst();
                aggregate.rebuild();
                await().atMost(DEADLINE)
                        .untilAsserted(() -> assertThat(Sql.query(database(), generations))
                                .hasSize(1)
                                .doesNotContain(former));
            }
            Sql.execute(database(), "ALTER TABLE " + partials + " REPLICA IDENTITY DEFAULT");
        }
    }

    @Test
    void tables_areIdentifiedByColumnsThatArePublished() throws SQLException {
        StreamSpec rows = StreamSpec.of(TestStreams.newName()).withPartitions(1);
        StreamSpec blocks = StreamSpec.of(TestStreams.newName()).withPartitions(1);
        eventSql.createStream(rows.withCompaction(Compaction.DEFAULT));
        eventSql.createStream(blocks.withStorage(Storage.BLOCKS));
        assertThat(Sql.query(database(), """
                SELECT c.oid::regclass
                FROM pg_class c
                WHERE c.relnamespace = 'eventsql'::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p'
                  AND c.relreplident = 'd'
                  AND NOT EXISTS (
                      SELECT FROM pg_index i
                      WHERE i.indrelid = c.oid AND i.indisprimary AND NOT EXISTS (
                          SELECT FROM pg_attribute a
                          WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attgenerated <> ''))""")).isEmpty();
    }
}
