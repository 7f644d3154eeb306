package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Order and completeness of events published by many calls. */
abstract class PublishingOrderContract extends Contract {
    PublishingOrderContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void publishAsync_withoutWaiting_storesKeyInCallOrder() {
        String stream = newStream();
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 1_000)
                .mapToObj(i -> publisher.publishAsync(stream, Event.ofText("one key", Integer.toString(i))))
                .toList();
        List<EventPosition> positions =
                futures.stream().map(CompletableFuture::join).toList();
        EventPosition first = positions.getFirst();
        assertThat(positions)
                .containsExactlyElementsOf(IntStream.range(0, 1_000)
                        .mapToObj(i -> new EventPosition(stream, first.shard(), first.partition(), i))
                        .toList());
        assertThat(readAll(stream).stream().map(StoredEvent::text)).containsExactlyElementsOf(texts(0, 1_000));
    }

    @Test
    void publishAll_manyKeys_returnsPositionsInCallOrder() {
        String stream = newStream();
        List<Event> events = IntStream.range(0, 500)
                .mapToObj(i -> i % 7 == 0 ? Event.ofText("" + i) : Event.ofText("key-" + i % 50, "" + i))
                .toList();
        List<EventPosition> positions = publisher.publishAll(stream, events);
        assertThat(positions).hasSize(500).doesNotHaveDuplicates();
        Map<EventPosition, String> stored = new HashMap<>();
        readAll(stream).forEach(event -> stored.put(event.position(), event.key() + "=" + event.text()));
        assertThat(stored).hasSize(500);
        for (int i = 0; i < events.size(); i++) {
            assertThat(stored.get(positions.get(i)))
                    .isEqualTo(events.get(i).key() + "=" + events.get(i).text());
        }
        assertThat(positions.stream().mapToInt(EventPosition::shard).distinct()).hasSize(shards);
        assertThat(IntStream.range(0, 500)
                        .filter(i -> i % 7 == 0)
                        .mapToObj(i -> positions.get(i).shard() + "/"
                                + positions.get(i).partition())
                        .distinct())
                .as("partitions of events without a key")
                .hasSize(1);
    }

    /**
     * Goal: with many concurrent callers of every kind, events of one key are stored once, in the order in which they
     * were published, in one partition, and the stored events are exactly the acknowledged ones.
     *
     * <p>Method: each thread has its own keys and counts up in each; at the end the whole stream is read.
     */
    @Test
    void publish_concurrentCallersOfEveryKind_keepOrderOfEachKey() throws Exception {
        String stream = newStream();
        int threads = 6;
        int callsEach = 80;
        Map<EventPosition, String> acknowledged = new HashMap<>();
        try (ExecutorService executor = Executors.newCachedThreadPool()) {
            List<Future<Map<EventPosition, String>>> results = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                Random random = new Random(seed + thread);
                String prefix = "t" + thread + "-";
                results.add(executor.submit(() -> publishRandomly(stream, prefix, callsEach, random)));
            }
            for (Future<Map<EventPosition, String>> result : results) {
                acknowledged.putAll(result.get(120, TimeUnit.SECONDS));
            }
        }
        List<StoredEvent> stored = readAll(stream);
        Map<EventPosition, String> found = new HashMap<>();
        stored.forEach(event -> found.put(event.position(), event.text()));
        assertThat(found).as("seed %d", seed).isEqualTo(acknowledged);

        Map<String, Integer> lastOf = new HashMap<>();
        Map<String, String> partitionOf = new HashMap<>();
        Map<String, Instant> timeOf = new HashMap<>();
        for (StoredEvent event : stored) {
            String partition = event.shard() + "/" + event.partition();
            Instant before = timeOf.put(partition, event.publishedAt());
            assertThat(before == null || !event.publishedAt().isBefore(before))
                    .as("published_at never decreases")
                    .isTrue();
            if (event.key() != null) {
                int number =
                        Integer.parseInt(event.text().substring(event.text().indexOf('=') + 1));
                Integer last = lastOf.put(event.key(), number);
                assertThat(number).as("of key %s, seed %d", event.key(), seed).isEqualTo(last == null ? 0 : last + 1);
                assertThat(partitionOf.computeIfAbsent(event.key(), k -> partition))
                        .isEqualTo(partition);
            }
        }
    }

    private Map<EventPosition, String> publishRandomly(String stream, String prefix, int calls, Random random) {
        Map<String, Integer> next = new HashMap<>();
        Map<CompletableFuture<EventPosition>, String> single = new HashMap<>();
        Map<CompletableFuture<List<EventPosition>>, List<String>> many = new HashMap<>();
        for (int call = 0; call < calls; call++) {
            List<Event> events = new ArrayList<>();
            int size = random.nextInt(3) == 0 ? 1 + random.nextInt(12) : 1;
            for (int i = 0; i < size; i++) {
                String key = random.nextInt(5) == 0 ? null : prefix + random.nextInt(6);
                int number = next.merge(key == null ? prefix + "none" : key, 1, Integer::sum) - 1;
                String text = (key == null ? prefix + "none" : key) + "=" + number;
                events.add(key == null ? Event.ofText(text) : Event.ofText(key, text));
            }
            List<String> texts = events.stream().map(Event::text).toList();
            switch (random.nextInt(3)) {
                case 0 -> many.put(CompletableFuture.completedFuture(publisher.publishAll(stream, events)), texts);
                case 1 -> many.put(publisher.publishAllAsync(stream, events), texts);
                default -> events.forEach(event -> single.put(publisher.publishAsync(stream, event), event.text()));
            }
        }
        Map<EventPosition, String> acknowledged = new HashMap<>();
        single.forEach((future, text) -> acknowledged.put(future.join(), text));
        many.forEach((future, texts) -> {
            List<EventPosition> positions = future.join();
            for (int i = 0; i < texts.size(); i++) {
                acknowledged.put(positions.get(i), texts.get(i));
            }
        });
        return acknowledged;
    }

    @Test
    void publish_manyConcurrentCallsToOnePartition_storesAllEvents() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 2_000)
                .mapToObj(i -> publisher.publishAsync(stream, Event.ofText("" + i)))
                .toList();
        futures.forEach(future ->
                assertThat(future.orTimeout(120, TimeUnit.SECONDS).join()).isNotNull());
        assertThat(readAll(stream)).hasSize(2_000);
    }
}
