package io.eventsql.runner.limits;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import java.time.Duration;
import java.util.List;

/** Reads a partition in pages of a fixed size, restarting from the beginning until the time is up. */
final class PageReadVariant implements Variant {
    private final LimitsContext context;
    private final EventPosition start;
    private final int events;
    private final int pageEvents;

    /**
     * @param start the position of the first event
     * @param events the number of events
     * @param pageEvents the events requested per call
     */
    PageReadVariant(LimitsContext context, EventPosition start, int events, int pageEvents) {
        this.context = context;
        this.start = start;
        this.events = events;
        this.pageEvents = pageEvents;
    }

    @Override
    public String name() {
        return "pages of " + pageEvents;
    }

    @Override
    public MeasuredInterval run(Duration time) {
        long startNanos = context.clock().nanos();
        long endNanos = startNanos + time.toNanos();
        long read = 0;
        long calls = 0;
        long now = startNanos;
        long offset = start.offset();
        while (now < endNanos && !context.stop().isRaised()) {
            int page = page(offset);
            read += page;
            calls++;
            offset += page;
            if (offset >= start.offset() + events) {
                offset = start.offset();
            }
            now = context.clock().nanos();
        }
        return new MeasuredInterval(read, calls, now - startNanos);
    }

    /** Reads the page at an offset. Returns its number of events. */
    private int page(long offset) {
        EventPosition from = new EventPosition(start.stream(), start.shard(), start.partition(), offset);
        List<StoredEvent> page = context.eventSql().read(from, pageEvents);
        if (page.isEmpty()
                || page.getFirst().offset() != offset
                || page.getLast().offset() != offset + page.size() - 1) {
            throw new IllegalStateException("Unexpected page at " + from + ": " + page.size() + " events"
                    + (page.isEmpty() ? "" : " from " + page.getFirst().position()));
        }
        return page.size();
    }
}
