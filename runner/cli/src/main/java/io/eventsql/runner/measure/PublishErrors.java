package io.eventsql.runner.measure;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Counts failed events by exception class, with the first message of each. Thread-safe. */
final class PublishErrors {
    private final Map<String, ErrorCount> byClass = new ConcurrentHashMap<>();

    void add(Throwable failure, int events) {
        String errorClass = failure.getClass().getName();
        ErrorCount one = new ErrorCount(errorClass, events, String.valueOf(failure.getMessage()));
        byClass.merge(errorClass, one, ErrorCount::plus);
    }

    /** Returns the counts in the order of class names. */
    List<ErrorCount> counts() {
        return byClass.values().stream()
                .sorted(Comparator.comparing(ErrorCount::errorClass))
                .toList();
    }
}
