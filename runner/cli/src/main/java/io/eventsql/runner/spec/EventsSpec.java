package io.eventsql.runner.spec;

/**
 * The events of a run.
 *
 * @param bytes the exact size of a value; 0: the {@code account_created} event of about 230 bytes
 * @param keys how many different keys they have; 0: none
 */
public record EventsSpec(int bytes, int keys) {}
