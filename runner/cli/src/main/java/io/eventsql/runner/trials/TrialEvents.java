package io.eventsql.runner.trials;

import io.eventsql.Event;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.runner.workload.EventSource;
import io.eventsql.runner.workload.KeyShare;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.IntStream;

/** Creates the calls of a trial. */
final class TrialEvents {

    private TrialEvents() {}

    /** Returns calls of one event each, cycling through prepared events. */
    static Iterator<List<Event>> singleCalls(List<Event> prepared, int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> List.of(prepared.get(i % prepared.size())))
                .iterator();
    }

    /** Creates events in advance. */
    static List<Event> prepare(EventSource source, int count) {
        return source.createEvents(KeyShare.withoutKeys(), false, 0, count, EpochMicros.now());
    }

    /** Returns calls with as many events as fit into a buffer, at least one, for {@code count} events in total. */
    static Iterator<List<Event>> bufferedCalls(EventSource source, int count, int bufferBytes) {
        return new Buffered(source, count, bufferBytes);
    }

    private static final class Buffered implements Iterator<List<Event>> {
        private final KeyShare keys = KeyShare.withoutKeys();
        private final EventSource source;
        private final int bufferBytes;
        private final int count;
        private int made;
        private int returned;
        private List<Event> next = new ArrayList<>();

        Buffered(EventSource source, int count, int bufferBytes) {
            this.source = source;
            this.count = count;
            this.bufferBytes = bufferBytes;
        }

        @Override
        public boolean hasNext() {
            return returned < count;
        }

        @Override
        public List<Event> next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            List<Event> call = next;
            long bytes = call.stream().mapToLong(event -> event.value().length).sum();
            next = new ArrayList<>();
            while (made < count && next.isEmpty()) {
                Event event = source.createEvents(keys, false, made, 1, EpochMicros.now())
                        .getFirst();
                made++;
                bytes += event.value().length;
                if (call.isEmpty() || bytes <= bufferBytes) {
                    call.add(event);
                } else {
                    next.add(event);
                }
            }
            returned += call.size();
            return call;
        }
    }
}
