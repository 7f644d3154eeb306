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

    /** Returns all problems in the order of their first occurrence. */
    public synchronized List<String> all() {
        return List.copyOf(problems);
    }
}
