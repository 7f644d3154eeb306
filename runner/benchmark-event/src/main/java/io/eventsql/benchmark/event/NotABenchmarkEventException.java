package io.eventsql.benchmark.event;

/** Thrown for a value that was not created by {@link BenchmarkEvent#encode}. The message names the first difference. */
public final class NotABenchmarkEventException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    NotABenchmarkEventException(String problem) {
        super("Not a benchmark event: " + problem);
    }
}
