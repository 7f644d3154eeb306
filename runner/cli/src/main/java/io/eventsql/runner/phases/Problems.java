package io.eventsql.runner.phases;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** The problems of a run, human-readable and without duplicates. Thread-safe. */
public final class Problems {
    private final Set<String> problems = new LinkedHashSet<>();

    public synchronized void add(String problem) {
        problems.add(problem);
    }

    /** Adds a problem if the count is positive. */
    public void addIfAny(long count, String what) {
        if (count > 0) {
            add(count + " " + what);
        }
    }

    /** Adds a problem for each kind of event that consumers did not receive once and in order. */
    public void addWrong(List<ConsumerCounts> consumers) {
        addIfAny(consumers.stream().mapToLong(ConsumerCounts::eventsLost).sum(), "events were lost");
        addIfAny(
                consumers.stream().mapToLong(ConsumerCounts::eventsDuplicated).sum(),
                "events were delivered more than once");
        addIfAny(
                consumers.stream().mapToLong(ConsumerCounts::orderViolations).sum(),
                "events were out of order for their key");
    }

    /** Returns all problems in the order of their first occurrence. */
    public synchronized List<String> all() {
        return List.copyOf(problems);
    }
}
