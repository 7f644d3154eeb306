package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/**
 * Goal: a stream dropped while an instance publishes to it fails the calls to this stream, alone and at once, and is not
 * created again; a stream created anew under its name gets the next events. Method: SQL drops the stream.
 */
class DroppedStreamIT extends PublishFixture {
    private void drop(String stream) throws SQLException {
        Sql.execute(
                dataSource(),
                "DELETE FROM eventsql.stream WHERE name = '" + stream + "'",
                "DROP TABLE " + TestStreams.table(stream) + " CASCADE");
    }

    @Test
    void publish_streamWasDropped_onlyItsCallsFailAndItStaysDropped() throws Exception {
        EventSql eventSql = open();
        String kept = newStream(eventSql, 2);
        String dropped = newStream(eventSql, 2);
        get(publish(eventSql, kept, "k", "before"));
        get(publish(eventSql, dropped, "k", "before"));
        drop(dropped);
        List<CompletableFuture<EventPosition>> good = new ArrayList<>();
        List<CompletableFuture<EventPosition>> failing = new ArrayList<>();
        whilePartitionsAreLocked(() -> {
            for (int i = 0; i < 10; i++) {
                good.add(publish(eventSql, kept, "k" + i, "after"));
                failing.add(publish(eventSql, dropped, "k" + i, "after"));
            }
        });

        for (CompletableFuture<EventPosition> call : failing) {
            assertThat(failureOf(call))
                    .isInstanceOf(EventNotStoredException.class)
                    .hasMessageContaining("the stream was dropped")
                    .hasRootCauseInstanceOf(UnknownStreamException.class);
        }
        for (CompletableFuture<EventPosition> call : good) {
            get(call);
        }
        assertThatThrownBy(() -> eventSql.publisher().publish(dropped, Event.ofText("k", "again")))
                .isInstanceOf(UnknownStreamException.class);
        assertThat(eventSql.streams())
                .extracting(StreamSpec::name)
                .contains(kept)
                .doesNotContain(dropped);
    }

    @Test
    void publish_streamWasCreatedAnew_isStoredThere() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 2);
        get(publish(eventSql, stream, "k", "before"));
        drop(stream);
        open().createStream(TestStreams.of(stream).withPartitions(2).withSegmentSize(1_000));

        EventPosition stored = get(publish(eventSql, stream, "k", "after"));

        assertThat(stored.offset()).isZero();
        assertThat(storedValues(stream)).containsExactly("after");
    }

    @Test
    void publish_streamWasCreatedAnewWithOtherPartitions_firstCallFailsAndLaterOnesAreStored() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 2);
        get(publish(eventSql, stream, "k", "before"));
        drop(stream);
        open().createStream(TestStreams.of(stream).withPartitions(3));

        assertThat(failureOf(publish(eventSql, stream, "k", "routed by the old definition")))
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("other partitions");
        get(publish(eventSql, stream, "k", "after"));

        assertThat(storedValues(stream)).containsExactly("after");
    }

    /** A shard gets it as it is on the other one, and not as a process remembers the former one. */
    @Test
    void publish_streamWasCreatedAnewOnOneShard_theOtherGetsTheNewDefinition() throws Exception {
        String stream = "anew";
        try (TestCluster two = TestCluster.ofShards(2)) {
            EventSql eventSql = two.open();
            eventSql.createStream(TestStreams.of(stream).withPartitions(2).withSegmentSize(1_000));
            String key = keyOfShard1(eventSql, stream);
            SwitchableDataSource second =
                    new SwitchableDataSource(two.dataSources().get(1));
            try (EventSql other =
                    EventSql.builder(List.of(two.dataSources().get(0), second)).build()) {
                other.deleteStream(stream, other.previewDeleteStream(stream).confirmation());
                second.setAvailable(false);
                StreamSpec anew = TestStreams.of(stream).withPartitions(2).withSegmentSize(2_000);
                assertThatThrownBy(() -> other.createStream(anew)).isInstanceOf(EventSqlException.class);
            }

            eventSql.publisher().publish(stream, Event.ofText(key, "after"));

            assertThat(two.sum("SELECT segment_size FROM eventsql.stream WHERE name = '" + stream + "'"))
                    .isEqualTo(4_000);
        }
    }

    /**
     * Goal: while only an unavailable shard may have a stream, its calls wait, and hold back none for another stream of the shard that
     * lacks it. Method: SQL drops it on the first of two shards. Calls for the other stream share its lanes, or need all.
     */
    @Test
    void publish_onlyUnavailableShardHasTheStream_itsCallsWaitAloneAndAreStoredInTheEnd() throws Exception {
        try (TestCluster two = TestCluster.ofShards(2);
                CapturedLog log = CapturedLog.ofAppending()) {
            DataSource first = two.dataSources().get(0);
            SwitchableDataSource second =
                    new SwitchableDataSource(two.dataSources().get(1));
            try (EventSql creator = EventSql.builder(two.dataSources()).build()) {
                creator.createStream(TestStreams.of("kept").withPartitions(2));
                creator.createStream(TestStreams.of("late").withPartitions(2));
            }
            Sql.execute(
                    first,
                    "DELETE FROM eventsql.stream WHERE name = 'late'",
                    "DROP TABLE " + TestStreams.table("late") + " CASCADE");
            List<String> keys = TestCluster.keysOfShard(0, 2, "key").limit(20).toList();
            List<Event> all = keys.stream().map(key -> Event.ofText(key, "x")).toList();
            try (EventSql eventSql = EventSql.builder(List.of(first, second))
                    .preferredShard(first)
                    .settings(settings().build())
                    .build()) {
                get(publish(
                        eventSql,
                        "late",
                        TestCluster.keysOfShard(1, 2, "key").findFirst().orElseThrow(),
                        "known by this process from now on"));
                second.setAvailable(false);
                List<CompletableFuture<EventPosition>> waiting = new ArrayList<>();
                for (String key : keys) {
                    waiting.add(publish(eventSql, "late", key, "after"));
                }
                waiting.add(eventSql.publisher().publishAsync("late", Event.ofText("without a key")));
                for (String key : keys) {
                    get(publish(eventSql, "kept", key, "after"));
                }
                get(eventSql.publisher().publishAllAsync("kept", all));
                assertThat(waiting).noneMatch(CompletableFuture::isDone);
                assertThat(log.lines("Append to shard0")).isEmpty();

                second.setAvailable(true);

                for (CompletableFuture<EventPosition> call : waiting) {
                    assertThat(get(call).shard()).isZero();
                }
            }
        }
    }

    /** Another process deletes it, and creates it anew with other partitions. */
    @Test
    void readKey_streamWasDeletedByAnotherProcess_isUnknownThenReadAsItIsNow() throws Exception {
        EventSql eventSql = open();
        EventSql remembering = open();
        StreamSpec indexed = TestStreams.of("indexed").withPartitions(3).withKeyIndex();
        eventSql.createStream(indexed);
        get(publish(eventSql, "indexed", "key-0", "before"));
        assertThat(eventSql.keyVersion("indexed", "key-0")).isEqualTo(1);
        assertThat(remembering.keyVersion("indexed", "key-0")).isEqualTo(1);
        EventSql other = open();
        other.deleteStream("indexed", other.previewDeleteStream("indexed").confirmation());
        assertThatThrownBy(() -> eventSql.keyVersion("indexed", "key-0")).isInstanceOf(UnknownStreamException.class);
        other.createStream(indexed.withPartitions(4));
        for (int i = 0; i < 20; i++) {
            get(publish(other, "indexed", "key-" + i, "after"));
        }

        for (int i = 0; i < 20; i++) {
            assertThat(remembering.readKey("indexed", "key-" + i).events())
                    .as("key-" + i)
                    .extracting(StoredEvent::text)
                    .containsExactly("after");
        }
    }

    private static String keyOfShard1(EventSql eventSql, String stream) {
        for (int i = 0; ; i++) {
            String key = "key-" + i;
            if (eventSql.publisher()
                            .publish(stream, Event.ofText(key, "before"))
                            .shard()
                    == 1) {
                return key;
            }
        }
    }

    /**
     * Goal: a stream that is dropped while segments are added to it in the background is not created again, and the attempts
     * end. Method: a lock makes the first attempt fail; the transaction that holds it drops the stream.
     */
    @Test
    void addSegments_streamWasDropped_endsAndItStaysDropped() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 1);
        try (CapturedLog log = CapturedLog.ofRetaining();
                Connection blocker = dataSource().getConnection()) {
            blocker.setAutoCommit(false);
            Sql.query(
                    blocker,
                    "SELECT pg_advisory_xact_lock(1163085127, hashtext('eventsql.events_" + stream + "__p0'))::text");
            get(publish(eventSql, stream, "k", "before"));
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> !log.lines("Adding segments to partition 0").isEmpty());
            Sql.query(
                    blocker,
                    "WITH d AS (DELETE FROM eventsql.stream WHERE name = ? RETURNING 1) SELECT * FROM d",
                    stream);
            blocker.commit();
            Sql.execute(dataSource(), "DROP TABLE " + TestStreams.table(stream) + " CASCADE");
            assertThat(failureOf(publish(eventSql, stream, "k", "after")))
                    .hasRootCauseInstanceOf(UnknownStreamException.class);

            await().atMost(Duration.ofSeconds(120))
                    .until(() -> !log.lines("adding no segments").isEmpty());

            assertThat(eventSql.streams()).extracting(StreamSpec::name).doesNotContain(stream);
            assertThat(log.lines("WARN")).hasSize(1);
        }
    }

    /**
     * Goal: an attempt to add segments that finds rows of the stream gone ends without a warning. Method: the attempt waits
     * for a lock while the transaction that holds it deletes the stream.
     */
    @Test
    void addSegments_streamIsDroppedWhileTheyAreAdded_endsWithoutWarning() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 1);
        try (CapturedLog log = CapturedLog.ofRetaining();
                Connection blocker = dataSource().getConnection()) {
            blocker.setAutoCommit(false);
            Sql.query(
                    blocker,
                    "SELECT pg_advisory_xact_lock(1163085127, hashtext('eventsql.events_" + stream + "__p0'))::text");
            get(publish(eventSql, stream, "k", "before"));
            Sql.query(blocker, "SELECT eventsql.begin_delete_stream_v1(?)::text", stream);
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> Sql.queryLong(
                                    dataSource(),
                                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
                            == 1);
            blocker.commit();

            await().atMost(Duration.ofSeconds(120))
                    .until(() -> !log.lines("adding no segments").isEmpty());

            assertThat(log.lines("WARN")).isEmpty();
        }
    }
}
