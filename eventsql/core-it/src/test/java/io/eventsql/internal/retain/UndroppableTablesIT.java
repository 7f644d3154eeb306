package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.shard.Shards;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A view of the application on a table that maintenance wants to drop stops nothing else, and is reported. */
@Timeout(120)
class UndroppableTablesIT {
    private static final String VIEW = "public.of_one_table";

    private static RetentionFixture fixture;
    private static Shards shards;

    private final String stream = RetentionFixture.newStream();
    private final String other = RetentionFixture.newStream();

    @BeforeAll
    static void open() {
        fixture = new RetentionFixture();
        shards = Shards.open(fixture.cluster.dataSources(), Settings.defaults());
    }

    @AfterEach
    void dropView() throws SQLException {
        Sql.execute(fixture.database, "DROP VIEW IF EXISTS " + VIEW);
    }

    @AfterAll
    static void close() {
        shards.close(System.nanoTime());
        fixture.close();
    }

    private void createBoth(int segmentSize, Retention retention) {
        for (String name : List.of(stream, other)) {
            fixture.eventSql.createStream(StreamSpec.of(name)
                    .withPartitions(1)
                    .withSegmentSize(segmentSize)
                    .withRetention(retention));
        }
    }

    private void createView(String table) throws SQLException {
        Sql.execute(fixture.database, "CREATE VIEW " + VIEW + " AS SELECT * FROM eventsql." + table);
    }

    @Test
    void expiredTable_othersAreDropped() throws Exception {
        createBoth(100, Retention.FOREVER.withMaxEvents(100));
        createView("events_" + stream + "__p0_s0");
        fixture.publish(stream, 550);
        fixture.publish(other, 550);
        RetentionKeeper keeper = new RetentionKeeper(shards.get(0), Duration.ofMillis(10));
        try (CapturedLog log = CapturedLog.ofRetaining()) {
            await().untilAsserted(() -> {
                keeper.runStep();
                assertThat(fixture.segments(stream).get(0)).isEqualTo("0-100 empty");
                assertThat(fixture.segments(stream).get(1)).startsWith("400-500");
                assertThat(fixture.segments(other).getFirst()).startsWith("400-500");
                assertThat(log.lines("__p0_s0 of an expired segment is not dropped"))
                        .isNotEmpty();
            });
        }
        Sql.execute(fixture.database, "DROP VIEW " + VIEW);
        await().untilAsserted(() -> {
            keeper.runStep();
            assertThat(fixture.segments(stream).getFirst()).startsWith("400-500");
        });
    }

    /** The spare segment above the one that ends early is dropped with it. */
    @Test
    void spareTable_otherSegmentsEnd() throws Exception {
        createBoth(1_000_000, Retention.FOREVER.withMaxAge(Duration.ofDays(1)));
        createView("events_" + stream + "__p0_s1");
        for (String name : List.of(stream, other)) {
            fixture.publish(name, 10);
            fixture.age(name, Duration.ofHours(4));
        }
        RetentionKeeper keeper = new RetentionKeeper(shards.get(0), Duration.ofMillis(10));
        try (CapturedLog log = CapturedLog.ofRetaining()) {
            await().untilAsserted(() -> {
                keeper.runStep();
                assertThat(fixture.segments(other).getFirst()).startsWith("0-10 ");
                assertThat(log.lines("cannot end early")).isNotEmpty();
            });
        }
        assertThat(fixture.segments(stream).getFirst()).startsWith("0-1000000 ");
        fixture.publish(stream, 10);
    }

    @Test
    void replacedTable_compactionContinues() throws Exception {
        fixture.eventSql.createStream(
                StreamSpec.of(stream).withPartitions(1).withSegmentSize(100).withCompaction(Compaction.DEFAULT));
        Sql.execute(fixture.database, "CREATE TABLE eventsql.replaced (id int)");
        createView("replaced");
        Sql.execute(
                fixture.database,
                "INSERT INTO eventsql.replaced_table VALUES ('replaced', now() - interval '2 minutes')");
        CompactionKeeper keeper = new CompactionKeeper(shards.get(0), Duration.ofMillis(10));
        try (CapturedLog log = CapturedLog.ofRetaining()) {
            await().untilAsserted(() -> {
                keeper.runStep();
                assertThat(log.lines("table replaced of a compacted segment is not dropped"))
                        .isNotEmpty();
            });
        }
        fixture.eventSql.publisher().publishAll(stream, Collections.nCopies(150, Event.ofText("k", "v")));
        await().untilAsserted(() -> {
            keeper.runStep();
            assertThat(Sql.queryLong(fixture.database, "SELECT count(*) FROM eventsql.events_" + stream))
                    .isEqualTo(51);
        });
    }
}
