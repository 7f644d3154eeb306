package io.eventsql.benchmark.event;

/** A value that {@link BenchmarkEvent#encode} did not make; the message says where it departs from the form. */
public final class NotABenchmarkEventException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    NotABenchmarkEventException(String problem) {
        super("Not a benchmark event: " + problem);
    }
}
