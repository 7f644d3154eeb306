package io.eventsql.runner.spec;

import java.util.List;

/**
 * Several trials for each of several numbers of events.
 *
 * @param eventCounts the numbers of events
 * @param trials the trials per number of events
 * @param bufferBytes the bytes of event values per call
 * @param waiting whether each call completes before the next one starts
 */
public record SweepSpec(List<Integer> eventCounts, int trials, int bufferBytes, boolean waiting) {}
