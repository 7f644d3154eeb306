package io.eventsql.runner.trials;

import java.util.List;

/**
 * The trials of a run.
 *
 * @param trials those that count, in their order
 * @param problems what was wrong with others, a line each
 * @param interrupted whether a stop signal ended the run early
 */
public record CompletedTrials<T>(List<T> trials, List<String> problems, boolean interrupted) {

    public CompletedTrials {
        trials = List.copyOf(trials);
        problems = List.copyOf(problems);
    }
}
