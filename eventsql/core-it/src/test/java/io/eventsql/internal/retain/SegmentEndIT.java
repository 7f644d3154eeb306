package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.shard.Shards;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Active segments end before they are full, so that the events of slow partitions expire in time. */
@Timeout(120)
class SegmentEndIT {
    private static final Retention ONE_DAY = Retention.FOREVER.withMaxAge(Duration.ofDays(1));

    private static RetentionFixture fixture;

    private final String stream = RetentionFixture.newStream();
    private final StreamSpec spec =
            StreamSpec.of(stream).withPartitions(1).withSegmentSize(1_000_000).withRetention(ONE_DAY);

    @BeforeAll
    static void open() {
        fixture = new RetentionFixture();
    }

    @AfterAll
    static void close() {
        fixture.close();
    }

    private String end() throws SQLException {
        return Sql.query(fixture.database, "SELECT eventsql.end_segment_v1(?, 0)", fixture.streamId(stream))
                .getFirst();
    }

    private List<String> toEnd() throws SQLException {
        return Sql.query(
                fixture.database,
                "SELECT stream_id FROM eventsql.segments_to_end_v1(100) WHERE stream_id = ?",
                fixture.streamId(stream));
    }

    @Test
    void trickle_expiresInTime() throws SQLException {
        fixture.eventSql.createStream(spec);
        fixture.publish(stream, 10);
        assertThat(toEnd()).isEmpty();
        assertThat(end()).isEqualTo("none");
        for (int hour = 0; hour < 40; hour += 4) {
            fixture.age(stream, Duration.ofHours(4));
            if (!toEnd().isEmpty()) {
                assertThat(end()).isEqualTo("ended");
            }
            fixture.publish(stream, 10);
            fixture.pass();
        }
        assertThat(fixture.logStart(stream)).isBetween(30L, 50L);
        assertThat(fixture.eventSql.read(new EventPosition(stream, 0, 0, fixture.logStart(stream)), 1_000))
                .hasSize((int) (110 - fixture.logStart(stream)));
    }

    /** All later events get a time that is not before that of the last one, also when the clock is right again. */
    @Test
    void clockWasAheadOnce_segmentsEndAndExpireInTime() throws SQLException {
        fixture.eventSql.createStream(spec);
        fixture.publish(stream, 10);
        fixture.age(stream, Duration.ofDays(-365));
        fixture.publish(stream, 10);
        awaitEnd(0, "0-20"); // no earlier segment says when it began
        fixture.publish(stream, 10);
        await().until(() -> {
            fixture.pass();
            return fixture.segments(stream).getFirst().equals("0-20 closed");
        });

        setEnds("+ interval '365 days'"); // as if it had been closed while the clock was ahead
        await().until(() -> {
            fixture.pass();
            return Sql.query(
                            fixture.database,
                            "SELECT 1 FROM eventsql.segment WHERE stream_id = ? AND last_published_at > now()",
                            fixture.streamId(stream))
                    .isEmpty();
        });
        assertThat(toEnd()).isEmpty();
        setEnds("- interval '4 hours'");
        awaitEnd(1, "20-30");

        await().until(() -> {
            fixture.pass();
            setEnds("- interval '2 days'");
            return fixture.logStart(stream) == 30;
        });
    }

    /** Waits until a segment has ended, which a pass of the instance may have done before. */
    private void awaitEnd(int segment, String range) {
        await().untilAsserted(() -> {
            end();
            assertThat(fixture.segments(stream).get(segment)).startsWith(range + " ");
        });
    }

    private void setEnds(String difference) throws SQLException {
        Sql.execute(
                fixture.database,
                "UPDATE eventsql.segment SET last_published_at = clock_timestamp() " + difference
                        + " WHERE state = 'closed' AND stream_id = " + fixture.streamId(stream));
    }

    @Test
    void readerOfTheStream_failsAtOnce_publishingContinues() throws Exception {
        fixture.eventSql.createStream(spec);
        fixture.publish(stream, 10);
        fixture.age(stream, Duration.ofHours(4));
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream);
            assertThatThrownBy(this::end)
                    .isInstanceOf(SQLException.class)
                    .hasFieldOrPropertyWithValue("SQLState", "55P03");
            fixture.publish(stream, 10);
            reader.rollback();
        }
        await().untilAsserted(() -> {
            end(); // unless a pass of the instance has ended it
            assertThat(fixture.segments(stream).getFirst()).startsWith("0-20 ");
        });
        fixture.publish(stream, 10);
        assertThat(fixture.eventSql.read(new EventPosition(stream, 0, 0, 0), 100))
                .hasSize(30);
    }

    /** Reading it while it is attached would make publishers wait: its end is proved before. */
    @Test
    void largeSegment_endsWithAValidatedConstraint() throws Exception {
        fixture.eventSql.createStream(spec);
        publishLarge(20_000);
        fixture.age(stream, Duration.ofHours(4));
        assertThat(end()).isEqualTo("large");
        int id = fixture.streamId(stream);
        assertThat(Sql.query(fixture.database, "SELECT eventsql.begin_segment_end_v1(?, 0)", id))
                .containsExactly("t");
        assertThat(end()).isEqualTo("large"); // killed before it was checked
        Sql.query(fixture.database, "SELECT eventsql.check_segment_end_v1(?, 0)", id);
        fixture.publish(stream, 10);
        assertThat(end()).isEqualTo("ended");
        assertThat(fixture.segments(stream).getFirst()).startsWith("0-22");
        assertThat(Sql.query(
                        fixture.database,
                        "SELECT conname FROM pg_constraint WHERE conname = 'eventsql_end' AND conrelid = "
                                + "'eventsql.events_" + stream + "__p0_s0'::regclass"))
                .isEmpty();
        fixture.publish(stream, 10);
    }

    /** The process died before the segment ended, and its constraint stayed. */
    @Test
    void constraintLeftBehind_appendsBeyondItAreStored() throws Exception {
        fixture.eventSql.createStream(spec);
        fixture.publish(stream, 10);
        Sql.execute(
                fixture.database,
                "ALTER TABLE eventsql.events_" + stream
                        + "__p0_s0 ADD CONSTRAINT eventsql_end CHECK (partition = 0 AND event_offset >= 0 AND event_offset < 15)");
        fixture.publish(stream, 10);
        fixture.publish(stream, 10);
        assertThat(fixture.eventSql.read(new EventPosition(stream, 0, 0, 0), 100))
                .hasSize(30);
    }

    private boolean begin() throws SQLException {
        return Sql.query(fixture.database, "SELECT eventsql.begin_segment_end_v1(?, 0)", fixture.streamId(stream))
                .equals(List.of("t"));
    }

    private void publishLarge(int events) {
        String large = "x".repeat(1_000);
        for (int i = 0; i < events / 1_000; i++) {
            fixture.eventSql.publisher().publishAll(stream, Collections.nCopies(1_000, Event.ofText("k", large)));
        }
    }

    /** Its places would last for years, if hardly any event arrives any more. */
    @Test
    void largeEventsInASmallSegment_thenNearlyNone_endsInTime() throws Exception {
        fixture.eventSql.createStream(spec.withSegmentSize(50_000));
        publishLarge(20_000);
        fixture.age(stream, Duration.ofHours(4));
        int steps = 0;
        while (begin()) {
            Sql.query(fixture.database, "SELECT eventsql.check_segment_end_v1(?, 0)", fixture.streamId(stream));
            assertThat(end()).isEqualTo("ended");
            assertThat(++steps).isLessThan(10);
        }
        assertThat(fixture.segments(stream).getFirst()).startsWith("0-20001 ");
        fixture.publish(stream, 10);
        assertThat(fixture.eventSql.read(new EventPosition(stream, 0, 0, 19_999), 100))
                .hasSize(11);
    }

    /** While it is checked, a transaction may begin to read the stream: nothing can be appended beyond its end then. */
    @Test
    void endOfALargeSegment_leavesRoomForHalfAsManyEvents() throws Exception {
        fixture.eventSql.createStream(spec.withSegmentSize(3_000_000));
        fixture.publish(stream, 10);
        fixture.age(stream, Duration.ofHours(4));
        Sql.execute(
                fixture.database,
                "UPDATE eventsql.producer_batch SET next_offset = 1000000 WHERE next_offset = 10 AND stream_id = "
                        + fixture.streamId(stream));
        assertThat(begin()).isTrue();
        assertThat(Sql.query(
                        fixture.database,
                        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'eventsql_end' AND conrelid = "
                                + "'eventsql.events_" + stream + "__p0_s0'::regclass"))
                .singleElement()
                .asString()
                .contains("1500000");
    }

    /** A report of one stream does not keep the events of another. */
    @Test
    void readerOfAnotherStream_segmentEnds() throws Exception {
        String other = RetentionFixture.newStream();
        for (String each : List.of(other, stream)) {
            fixture.eventSql.createStream(StreamSpec.of(each)
                    .withPartitions(1)
                    .withSegmentSize(1_000_000)
                    .withRetention(ONE_DAY));
            fixture.publish(each, 10);
            fixture.age(each, Duration.ofHours(4));
        }
        Shards shards = Shards.open(fixture.cluster.dataSources(), Settings.defaults());
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + other);
            RetentionKeeper keeper = new RetentionKeeper(shards.get(0), Duration.ofMillis(10));
            await().atMost(Duration.ofSeconds(30)).until(() -> {
                keeper.runStep();
                return fixture.segments(stream).getFirst().startsWith("0-10 ");
            });
            reader.rollback();
        } finally {
            shards.close(System.nanoTime());
        }
    }
}
