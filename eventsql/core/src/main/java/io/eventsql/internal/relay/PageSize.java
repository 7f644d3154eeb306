package io.eventsql.internal.relay;

/** How many events are moved at a time: all that fit, fewer while one among them is looked for. Used by one thread. */
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

    /** No event more is taken once the values have so many bytes. */
    long bytes() {
        return bytes;
    }

    boolean isReduced() {
        return events < eventsMax;
    }

    /** One of so many events cannot be moved. */
    void halve(int tried) {
        events = Math.max(1, Math.min(events, tried) / 2);
    }

    /** A page was moved. */
    void grow() {
        events = Math.min(eventsMax, events * 2);
    }
}
