package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.KeyRoutes.Target;
import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class EventBufferTest {
    private static final KeyRoutes ROUTES = routes(7);

    private static KeyRoutes routes(int mapVersion) {
        return new KeyRoutes(
                Collections.nCopies(KeyHash.SLOTS, 1), Collections.nCopies(2, PartitionMap.first(mapVersion, 2)));
    }

    private static EncodedEvent event(String key, String text) {
        return new EncodedEvent(key, text.getBytes(java.nio.charset.StandardCharsets.UTF_8), null);
    }

    @Test
    void drain_numbersBatchesOfEachPartitionInOrder() {
        EventBuffer buffer = new EventBuffer("s", ROUTES, 0);
        List<EncodedEvent> events = IntStream.range(0, 2 * EventBuffer.BATCH_EVENTS_MAX + 1)
                .mapToObj(n -> event("k", "" + n))
                .toList();
        events.forEach(buffer::add);
        assertThat(buffer.size()).isEqualTo(events.size());
        List<EventBatch> batches = buffer.drain();
        assertThat(batches).extracting(EventBatch::number).containsExactly(1L, 2L, 3L);
        assertThat(batches).flatExtracting(EventBatch::events).containsExactlyElementsOf(events);
        assertThat(batches)
                .allMatch(batch -> batch.mapVersion() == 7 && batch.target().shard() == 1);
        assertThat(buffer.bytes()).isZero();
        assertThat(buffer.drain()).isEmpty();
        buffer.add(event("k", "next"));
        assertThat(buffer.drain()).singleElement().satisfies(batch -> {
            assertThat(batch.number()).isEqualTo(4);
            assertThat(batch.producer()).isEqualTo(batches.get(0).producer());
        });
    }

    @Test
    void drain_largeEvents_respectsTheLimitOfABatch() {
        EventBuffer buffer = new EventBuffer("s", ROUTES, 0);
        String third = "x".repeat((int) (EventBuffer.BATCH_BYTES_MAX / 3));
        IntStream.range(0, 5).forEach(n -> buffer.add(event("k", third)));
        assertThat(buffer.drain()).extracting(batch -> batch.events().size()).containsExactly(2, 2, 1);
    }

    @Test
    void eventsWithoutKey_stayTogether_andTakeTurns() {
        EventBuffer buffer = new EventBuffer("s", ROUTES, 3);
        for (Target expected : List.of(new Target(1, 1), new Target(0, 0), new Target(1, 0))) {
            buffer.add(event(null, "a"));
            buffer.add(event(null, "b"));
            assertThat(buffer.drain()).singleElement().satisfies(batch -> {
                assertThat(batch.target()).isEqualTo(expected);
                assertThat(batch.events()).hasSize(2);
            });
        }
    }

    @Test
    void reroute_anotherMap_numbersFromOneAgain() {
        EventBuffer buffer = new EventBuffer("s", ROUTES, 0);
        buffer.add(event("k", "a"));
        EventBatch first = buffer.drain().get(0);
        buffer.reroute(ROUTES);
        buffer.add(event("k", "b"));
        assertThat(buffer.drain()).singleElement().satisfies(batch -> {
            assertThat(batch.producer()).isEqualTo(first.producer());
            assertThat(batch.number()).isEqualTo(2);
        });
        buffer.reroute(routes(8));
        buffer.add(event("k", "c"));
        assertThat(buffer.drain()).singleElement().satisfies(batch -> {
            assertThat(batch.producer()).isNotEqualTo(first.producer());
            assertThat(batch.number()).isEqualTo(1);
            assertThat(batch.mapVersion()).isEqualTo(8);
        });
    }

    @Test
    void batch_serialized_isTheSame() throws IOException {
        EventBatch batch = new EventBatch(
                java.util.UUID.randomUUID(),
                3,
                "orders.ä",
                new Target(1, 2),
                4,
                List.of(
                        event("ä😀", "v"),
                        new EncodedEvent(null, new byte[0], "{\"a\":\"b\"}"),
                        new EncodedEvent("k", null, null)));
        BatchSerializer serializer = new BatchSerializer();
        assertThat(serializer.deserialize(serializer.getVersion(), serializer.serialize(batch)))
                .isEqualTo(batch);
        assertThatIOException()
                .isThrownBy(() -> serializer.deserialize(2, new byte[0]))
                .withMessageContaining("version 2");
    }
}
