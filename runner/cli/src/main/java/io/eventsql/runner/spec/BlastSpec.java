package io.eventsql.runner.spec;

/**
 * A burst, repeated.
 *
 * @param messages events of a burst
 * @param repeats bursts
 * @param capBytes bytes of a burst, at most: larger messages are fewer
 */
public record BlastSpec(int messages, int repeats, long capBytes) {}
