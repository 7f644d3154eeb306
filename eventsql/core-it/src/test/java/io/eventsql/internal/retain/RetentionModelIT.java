package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.RetainedSegment;
import io.eventsql.Retention;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: nothing within the policy is lost, everything beyond it goes, and offsets stay gapless above the log's start, while
 * events, consumers and policies change. Method: random operations, compared with a model of every event after each pass;
 * hours pass by making everything stored older.
 */
@Timeout(300)
class RetentionModelIT {
    private static final int PARTITIONS = 2;
    private static final int OPERATIONS = 150;

    private final Random random = Seeds.random("RetentionModelIT");
    private final String stream = RetentionFixture.newStream();
    private final List<List<Duration>> publishedAt = new ArrayList<>();
    private final Map<String, Consumer> consumers = new HashMap<>();
    private final long[] logStarts = new long[PARTITIONS];
    private Duration now = Duration.ZERO;
    private Retention retention = Retention.FOREVER;

    /** What a consumer has handled, and when it last committed, of each partition. */
    private record Consumer(long[] next, Duration[] committedAt) {}

    @Test
    void randomOperations_expireExactlyWhatThePoliciesSay() throws SQLException {
        for (int partition = 0; partition < PARTITIONS; partition++) {
            publishedAt.add(new ArrayList<>());
        }
        try (RetentionFixture fixture = new RetentionFixture()) {
            fixture.eventSql.createStream(spec());
            for (int i = 0; i < OPERATIONS; i++) {
                switch (random.nextInt(8)) {
                    case 0, 1 -> publish(fixture);
                    case 2 -> {
                        Duration time = Duration.ofHours(1 + random.nextInt(20));
                        now = now.plus(time);
                        fixture.age(stream, time);
                    }
                    case 3 -> changePolicy(fixture);
                    case 4 -> commit(fixture);
                    case 5 -> endSegments(fixture);
                    default -> passAndCheck(fixture);
                }
            }
            passAndCheck(fixture);
        }
    }

    private StreamSpec spec() {
        return StreamSpec.of(stream)
                .withPartitions(PARTITIONS)
                .withSegmentSize(100)
                .withRetention(retention);
    }

    private void publish(RetentionFixture fixture) {
        List<Event> events = new ArrayList<>();
        int count = 1 + random.nextInt(250);
        for (int i = 0; i < count; i++) {
            events.add(Event.ofText("key" + random.nextInt(10), "value"));
        }
        for (EventPosition position : fixture.eventSql.publisher().publishAll(stream, events)) {
            List<Duration> ofPartition = publishedAt.get(position.partition());
            assertThat(position.offset()).isEqualTo(ofPartition.size());
            ofPartition.add(now);
        }
    }

    private void changePolicy(RetentionFixture fixture) {
        retention = Retention.FOREVER.withAbandonedAfter(Duration.ofMinutes(30 * 60 + 30));
        if (random.nextInt(3) > 0) {
            retention = retention.withMaxAge(Duration.ofMinutes(60 * (10 + random.nextInt(50)) + 30));
        }
        if (random.nextInt(3) == 0) {
            retention = retention.withMaxEvents(1 + random.nextInt(1_000));
        }
        if (random.nextInt(3) == 0) {
            retention = retention.withExpireHandled();
        }
        fixture.eventSql.alterStream(spec());
    }

    private void commit(RetentionFixture fixture) throws SQLException {
        String name = "c" + random.nextInt(2);
        Duration created = now;
        Consumer consumer = consumers.computeIfAbsent(
                name, any -> new Consumer(new long[PARTITIONS], new Duration[] {created, created}));
        int partition = random.nextInt(PARTITIONS);
        int head = publishedAt.get(partition).size();
        consumer.next[partition] += random.nextLong(head - consumer.next[partition] + 1);
        consumer.committedAt[partition] = now;
        fixture.commit(stream, name, partition, consumer.next[partition]);
    }

    private void endSegments(RetentionFixture fixture) throws SQLException {
        for (int partition = 0; partition < PARTITIONS; partition++) {
            Sql.query(fixture.database, "SELECT eventsql.end_segment_v1(?, ?)", fixture.streamId(stream), partition);
        }
    }

    private void passAndCheck(RetentionFixture fixture) throws SQLException {
        List<RetainedSegment> plan = fixture.eventSql.retentionPlan(stream);
        fixture.pass(); // may have been in the middle of a background pass
        fixture.pass();
        Sql.query(fixture.database, "SELECT eventsql.drop_empty_segments_v1(false)");
        for (int partition = 0; partition < PARTITIONS; partition++) {
            int of = partition;
            long start = Long.parseLong(Sql.query(
                            fixture.database,
                            "SELECT log_start FROM eventsql.partition_head WHERE stream = ? AND partition = ?",
                            stream,
                            partition)
                    .getFirst());
            long head = publishedAt.get(partition).size();
            assertThat(start)
                    .isEqualTo(plan.stream()
                            .filter(segment -> segment.partition() == of && segment.expiresBy() != null)
                            .mapToLong(RetainedSegment::endOffset)
                            .max()
                            .orElse(logStarts[partition]));
            for (long offset = logStarts[partition]; offset < start; offset++) {
                assertThat(isBeyondPolicy(partition, offset))
                        .as("offset %d of partition %d was beyond %s", offset, partition, retention)
                        .isTrue();
            }
            logStarts[partition] = start;
            assertThat(Sql.query(
                            fixture.database,
                            "SELECT event_offset FROM eventsql.events_" + stream
                                    + " WHERE partition = ? ORDER BY event_offset",
                            partition))
                    .isEqualTo(LongStream.range(start, head)
                            .mapToObj(Long::toString)
                            .toList());
            assertNothingLeft(fixture, partition, head);
        }
    }

    /** The first segment that is left has an event within the policy. */
    private void assertNothingLeft(RetentionFixture fixture, int partition, long head) {
        fixture.eventSql.retentionPlan(stream).stream()
                .filter(segment -> segment.partition() == partition)
                .findFirst()
                .ifPresent(first -> {
                    long last = first.endOffset() - 1;
                    assertThat(isTooOld(partition, last)).isFalse();
                    assertThat(!first.active()
                                    && retention.maxEvents() != null
                                    && head - first.endOffset() >= retention.maxEvents())
                            .isFalse();
                    assertThat(!first.active() && isHandled(partition, last)).isFalse();
                });
    }

    private boolean isBeyondPolicy(int partition, long offset) {
        long head = publishedAt.get(partition).size();
        return isTooOld(partition, offset)
                || (retention.maxEvents() != null && head - offset > retention.maxEvents())
                || isHandled(partition, offset);
    }

    /** Hours pass, and the limits are half hours: what passes while the test runs makes no difference. */
    private boolean isTooOld(int partition, long offset) {
        return retention.maxAge() != null
                && now.minus(publishedAt.get(partition).get((int) offset)).compareTo(retention.maxAge()) > 0;
    }

    /** Whether each consumer has handled the event, or has been abandoned. */
    private boolean isHandled(int partition, long offset) {
        return retention.expireHandled()
                && !consumers.isEmpty()
                && consumers.values().stream()
                        .allMatch(consumer ->
                                consumer.next[partition] > offset || isAbandoned(consumer, partition, offset));
    }

    private boolean isAbandoned(Consumer consumer, int partition, long offset) {
        Duration committed = consumer.committedAt[partition];
        Duration published = publishedAt.get(partition).get((int) offset);
        Duration latest = committed.compareTo(published) > 0 ? committed : published;
        return now.minus(latest).compareTo(retention.abandonedAfter()) >= 0;
    }
}
