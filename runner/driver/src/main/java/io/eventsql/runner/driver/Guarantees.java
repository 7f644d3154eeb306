package io.eventsql.runner.driver;

/**
 * What a system promises, in a few words each: shown beside its numbers, which mean nothing without it.
 *
 * @param durability what has happened to an event when its publish call is answered, such as {@code flushed to disk (fsync)}
 * @param order between which events order is kept, such as {@code per key}
 * @param delivery how often a consumer gets an event, such as {@code at least once}
 */
public record Guarantees(String durability, String order, String delivery) {}
