package io.eventsql.runner.measure;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;

/** Counts failed events by exception class, with the first message of each. Thread-safe. */
final class PublishErrors {
    private final Map<String, ErrorCount> byClass = new ConcurrentHashMap<>();

    void add(Throwable failure, int events) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        String errorClass = cause.getClass().getName();
        ErrorCount one = new ErrorCount(errorClass, events, String.valueOf(cause.getMessage()));
        byClass.merge(errorClass, one, ErrorCount::plus);
    }

    /** Returns the counts in the order of class names. */
    List<ErrorCount> counts() {
        return byClass.values().stream()
                .sorted(Comparator.comparing(ErrorCount::errorClass))
                .toList();
    }
}
