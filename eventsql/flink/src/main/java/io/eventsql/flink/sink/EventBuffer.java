package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.Target;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Collects the events of a writer and makes batches of them, in the order of the events. Each writer is a producer of its own,
 * also after a restart: a batch that a former one has left in a checkpoint keeps its producer and number. Used by one thread.
 */
final class EventBuffer {
    /** The largest batch of a publisher of the library, by default. */
    static final int BATCH_EVENTS_MAX = 5_000;

    static final long BATCH_BYTES_MAX = 8L << 20;

    private final String stream;
    private final Map<Target, List<EncodedEvent>> events = new LinkedHashMap<>();
    private final Map<Target, Long> lastNumbers = new HashMap<>();
    private UUID producer = UUID.randomUUID();
    private KeyRoutes routes;
    private int turn;
    private long bytes;
    private int size;

    /** @param turn where events without a key begin: writers that start together should not all begin at the same partition */
    EventBuffer(String stream, KeyRoutes routes, int turn) {
        this.stream = stream;
        this.routes = routes;
        this.turn = turn;
    }

    void add(EncodedEvent event) {
        String key = event.key();
        Target target = key == null ? routes.ofTurn(turn) : routes.of(key);
        events.computeIfAbsent(target, any -> new ArrayList<>()).add(event);
        bytes += event.bytes();
        size++;
    }

    /** Returns the bytes of the events that {@link #drain} will return. */
    long bytes() {
        return bytes;
    }

    /** Returns the number of the events that {@link #drain} will return. */
    int size() {
        return size;
    }

    /** Returns batches of all events, and forgets them. */
    List<EventBatch> drain() {
        List<EventBatch> batches = new ArrayList<>();
        events.forEach((target, ofTarget) -> addBatches(target, ofTarget, batches));
        events.clear();
        bytes = 0;
        size = 0;
        turn++;
        return batches;
    }

    private void addBatches(Target target, List<EncodedEvent> ofTarget, List<EventBatch> batches) {
        int first = 0;
        long batchBytes = 0;
        for (int i = 0; i < ofTarget.size(); i++) {
            int eventBytes = ofTarget.get(i).bytes();
            if (i > first && (i - first == BATCH_EVENTS_MAX || batchBytes + eventBytes > BATCH_BYTES_MAX)) {
                batches.add(batch(target, ofTarget.subList(first, i)));
                first = i;
                batchBytes = 0;
            }
            batchBytes += eventBytes;
        }
        batches.add(batch(target, ofTarget.subList(first, ofTarget.size())));
    }

    private EventBatch batch(Target target, List<EncodedEvent> ofBatch) {
        long number = lastNumbers.merge(target, 1L, Long::sum);
        return new EventBatch(producer, number, stream, target, routes.mapVersion(target), List.copyOf(ofBatch));
    }

    /**
     * Routes later events by other routes. The buffer must be empty. Batches that were routed by former maps may never be
     * stored in their partitions, so later ones have another producer: a partition accepts no number after a gap.
     */
    void reroute(KeyRoutes newRoutes) {
        if (size > 0) {
            throw new IllegalStateException("events were routed by the former routes");
        }
        if (!newRoutes.equals(routes)) {
            producer = UUID.randomUUID();
            lastNumbers.clear();
        }
        routes = newRoutes;
    }
}
