package io.eventsql.internal.relay;

/** The adaptive size of a page: reduced in order to isolate an event that is rejected, then growing again. Used by one thread. */
final class PageSize {
    private final int eventsMax;
    private final long bytes;
    private int events;

    PageSize(int eventsMax, long bytes) {
        this.eventsMax = eventsMax;
        this.bytes = bytes;
        this.events = eventsMax;
    }

    int events() {
        return events;
    }

    int eventsMax() {
        return eventsMax;
    }

    /** Returns the number of bytes of values after which a page takes no further event. */
    long bytes() {
        return bytes;
    }

    boolean isReduced() {
        return events < eventsMax;
    }

    /** Halves the size after a page of {@code tried} events was rejected. */
    void halve(int tried) {
        events = Math.max(1, Math.min(events, tried) / 2);
    }

    /** Limits the next page to {@code limit} events, at least 1. */
    void limit(int limit) {
        events = Math.min(events, limit);
    }

    /** Doubles the size after a page was moved. */
    void grow() {
        events = Math.min(eventsMax, events * 2);
    }
}
