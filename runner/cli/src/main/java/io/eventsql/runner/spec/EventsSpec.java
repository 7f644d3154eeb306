package io.eventsql.runner.spec;

/**
 * The events of a run.
 *
 * @param bytes the exact size of a value; 0 for the {@code account_created} event of about 230 bytes
 * @param keys the number of distinct keys; 0 for events without keys
 */
public record EventsSpec(int bytes, int keys) {}
