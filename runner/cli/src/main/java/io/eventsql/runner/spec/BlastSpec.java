package io.eventsql.runner.spec;

/**
 * A repeated burst of messages.
 *
 * @param messages the events of a burst
 * @param repeats the number of bursts
 * @param capBytes the maximum bytes of a burst; limits the number of large messages
 */
public record BlastSpec(int messages, int repeats, long capBytes) {}
