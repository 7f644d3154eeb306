package io.eventsql.runner.trials;

import java.util.List;

/**
 * The completed trials of a run.
 *
 * @param trials the valid trials in order
 * @param problems the problems of other trials, one line each
 * @param interrupted whether a stop signal aborted the run
 */
public record CompletedTrials<T>(List<T> trials, List<String> problems, boolean interrupted) {

    public CompletedTrials {
        trials = List.copyOf(trials);
        problems = List.copyOf(problems);
    }
}
