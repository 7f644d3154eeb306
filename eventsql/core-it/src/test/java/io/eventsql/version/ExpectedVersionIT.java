package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyTracking;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Publishing with an expected version, and the version of a key whatever has appended its events. */
@Timeout(120)
class ExpectedVersionIT {
    private static TestCluster cluster;
    private static EventSql eventSql;
    private static EventPublisher publisher;

    private final String stream = TestStreams.newName();

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(2);
        eventSql = cluster.open();
        publisher = eventSql.publisher();
    }

    private void createStream() {
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(100).withKeyVersions());
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private List<String> texts(EventPosition first, int events) {
        return eventSql.read(first, events).stream().map(StoredEvent::text).toList();
    }

    @Test
    void publish_versionExpected_storesOnlyIfKeyHasIt() {
        createStream();
        EventPosition first = publisher.publish(stream, Event.ofText("a", "1"), ExpectedVersion.NONE);
        EventPosition second = publisher.publish(stream, Event.ofText("a", "2"), ExpectedVersion.of(1));
        assertThat(second.offset()).isEqualTo(first.offset() + 1);
        assertThat(eventSql.keyVersion(stream, "a")).isEqualTo(2);

        for (long stale : new long[] {0, 1, 3}) {
            assertThatExceptionOfType(VersionConflictException.class)
                    .isThrownBy(() -> publisher.publish(stream, Event.ofText("a", "x"), ExpectedVersion.of(stale)))
                    .satisfies(conflict -> {
                        assertThat(conflict.expectedVersion()).isEqualTo(stale);
                        assertThat(conflict.actualVersion()).isEqualTo(2);
                        assertThat(conflict.key()).isEqualTo("a");
                        assertThat(conflict.stream()).isEqualTo(stream);
                    });
        }
        assertThat(publisher
                        .publish(stream, Event.ofText("a", "3"), ExpectedVersion.ANY)
                        .offset())
                .isEqualTo(first.offset() + 2);
        assertThat(texts(first, 10)).containsExactly("1", "2", "3");
        assertThat(eventSql.keyVersion(stream, "never published")).isZero();
    }

    @Test
    void publishAll_versionExpected_storesAllEventsOrNone() {
        createStream();
        List<Event> three = List.of(Event.ofText("a", "1"), Event.ofText("a", "2"), Event.ofText("a", "3"));
        List<EventPosition> positions = publisher.publishAll(stream, three, ExpectedVersion.NONE);
        assertThat(positions).extracting(EventPosition::offset).containsExactly(0L, 1L, 2L);
        assertThatExceptionOfType(VersionConflictException.class)
                .isThrownBy(() -> publisher.publishAll(stream, three, ExpectedVersion.of(2)))
                .satisfies(conflict -> assertThat(conflict.actualVersion()).isEqualTo(3));
        assertThat(publisher.publishAll(stream, three, ExpectedVersion.of(3)))
                .extracting(EventPosition::offset)
                .containsExactly(3L, 4L, 5L);
        assertThat(eventSql.keyVersion(stream, "a")).isEqualTo(6);
    }

    /** While the first append is in progress, the calls gather: conflicts and others are in the same batches. */
    @ParameterizedTest
    @EnumSource(Storage.class)
    void publishAsync_callsOfOneBatch_eachHasItsOwnOutcome(Storage storage) {
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(3).withStorage(storage).withKeyVersions());
        List<CompletableFuture<EventPosition>> good = new ArrayList<>();
        List<CompletableFuture<EventPosition>> conflicting = new ArrayList<>();
        for (int version = 0; version < 60; version++) {
            for (String key : List.of("a", "b", "c", "d")) {
                Event event = Event.ofText(key, key + version);
                boolean isPlain = version % 10 == 7; // counted, too
                good.add(
                        isPlain
                                ? publisher.publishAsync(stream, event)
                                : publisher.publishAsync(stream, event, ExpectedVersion.of(version)));
                if (version % 3 == 0) {
                    conflicting.add(
                            publisher.publishAsync(stream, Event.ofText(key, "x"), ExpectedVersion.of(version)));
                }
                publisher.publishAsync(stream, Event.ofText("without a key"));
            }
        }
        good.forEach(CompletableFuture::join);
        for (CompletableFuture<EventPosition> future : conflicting) {
            assertThatExceptionOfType(CompletionException.class)
                    .isThrownBy(future::join)
                    .withCauseInstanceOf(VersionConflictException.class);
        }
        for (int i = 0; i < good.size(); i++) { // each at the position that its caller was given
            assertThat(texts(good.get(i).join(), 1)).containsExactly("abcd".charAt(i % 4) + "" + i / 4);
        }
        for (String key : List.of("a", "b", "c", "d")) {
            assertThat(eventSql.keyVersion(stream, key)).isEqualTo(60);
        }
    }

    @Test
    void keyVersion_countsEventsOfEveryAppend_andSurvivesClearing() throws Exception {
        createStream();
        String other = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(other).withPartitions(1));
        publisher.publish(stream, Event.ofText("a", "1"));
        publisher.publishAll(stream, List.of(Event.ofText("a", "2"), Event.ofText("b", "1"), Event.ofText("a", "3")));
        List<CompletableFuture<EventPosition>> ofTwoStreams = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            ofTwoStreams.add(publisher.publishAsync(stream, Event.ofText("a", "async")));
            ofTwoStreams.add(publisher.publishAsync(other, Event.ofText("a", "async")));
        }
        ofTwoStreams.forEach(CompletableFuture::join);
        publisher.publish(stream, Event.tombstone("a"));
        assertThat(eventSql.keyVersion(stream, "a")).isEqualTo(104);

        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
        assertThat(eventSql.keyVersion(stream, "a")).isEqualTo(104);
        publisher.publish(stream, Event.ofText("a", "105"), ExpectedVersion.of(104));
        assertThat(eventSql.keyVersion(stream, "b")).isEqualTo(1);

        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.key_version WHERE stream_id NOT IN ("
                        + "SELECT stream_id FROM eventsql.stream)"))
                .isZero();
        eventSql.createStream(StreamSpec.of(stream).withPartitions(2).withKeyVersions());
        assertThat(eventSql.keyVersion(stream, "a")).isZero();
    }

    @Test
    void publish_severalShards_eachKeyHasItsVersion() {
        createStream();
        for (int version = 0; version < 3; version++) {
            for (int key = 0; key < 30; key++) {
                publisher.publish(stream, Event.ofText("k" + key, "" + version), ExpectedVersion.of(version));
            }
        }
        assertThat(eventSql.keyVersion(stream, "k7")).isEqualTo(3);
    }

    @Test
    void publish_versionExpectedButNotCounted_isRefused() {
        createStream();
        String plain = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(plain).withPartitions(1));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> publisher.publish(plain, Event.ofText("a", "1"), ExpectedVersion.NONE))
                .satisfies(e -> assertThat(e.field()).isEqualTo("stream"));
        assertThatExceptionOfType(InvalidInputException.class).isThrownBy(() -> eventSql.keyVersion(plain, "a"));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> publisher.publish(stream, Event.ofText("without a key"), ExpectedVersion.NONE));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> publisher.publishAll(
                        stream, List.of(Event.ofText("a", "1"), Event.ofText("b", "1")), ExpectedVersion.NONE));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> publisher.publishAll(stream, List.of(), ExpectedVersion.NONE));
        assertThatExceptionOfType(InvalidInputException.class).isThrownBy(() -> ExpectedVersion.of(-1));
        StreamSpec counted =
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(100).withKeyVersions();
        assertThat(eventSql.streams()).contains(counted);
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.alterStream(counted.withKeyTracking(KeyTracking.OFF)))
                .satisfies(e -> assertThat(e.field()).isEqualTo("stream.keyTracking"));
    }
}
