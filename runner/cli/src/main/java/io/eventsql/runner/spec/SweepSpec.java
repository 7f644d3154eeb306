package io.eventsql.runner.spec;

import java.util.List;

/**
 * Numbers of events, each several times.
 *
 * @param eventCounts how many events a trial has
 * @param trials how often each number is measured
 * @param bufferBytes events of one call, as bytes of their values
 * @param waiting whether each call is waited for before the next
 */
public record SweepSpec(List<Integer> eventCounts, int trials, int bufferBytes, boolean waiting) {}
