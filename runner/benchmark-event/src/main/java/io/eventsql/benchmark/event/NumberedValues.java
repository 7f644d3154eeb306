package io.eventsql.benchmark.event;

import java.util.concurrent.atomic.AtomicLong;

/** Values of the events of one run, numbered from 0, for programs that publish without the runner. Thread-safe. */
public final class NumberedValues {
    private final String run;
    private final int eventBytes;
    private final AtomicLong numbers = new AtomicLong();

    /**
     * @param run the id of the run, see {@link BenchmarkEvent#run}
     * @param eventBytes the size of a value, see {@link BenchmarkEvent#encode(int)}; 0 for those of {@link
     *     BenchmarkEvent#encode()}
     */
    public NumberedValues(String run, int eventBytes) {
        this.run = run;
        this.eventBytes = eventBytes;
    }

    /** Returns the value of the next event. */
    public byte[] next() {
        BenchmarkEvent event = new BenchmarkEvent(run, 0, false, numbers.getAndIncrement(), EpochMicros.now());
        return eventBytes == 0 ? event.encode() : event.encode(eventBytes);
    }
}
