package io.eventsql.runner.phases;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** What went wrong in a run, for people; each thing is kept once. Thread-safe. */
public final class Problems {
    private final Set<String> problems = new LinkedHashSet<>();

    public synchronized void add(String problem) {
        problems.add(problem);
    }

    /** Adds one where the count is not 0. */
    public void addIfAny(long count, String what) {
        if (count > 0) {
            add(count + " " + what);
        }
    }

    /** All, in the order in which they came first. */
    public synchronized List<String> all() {
        return List.copyOf(problems);
    }
}
