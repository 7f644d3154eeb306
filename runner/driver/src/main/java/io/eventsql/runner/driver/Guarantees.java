package io.eventsql.runner.driver;

/**
 * The guarantees of a system, shown next to its measurements, which are only comparable with them.
 *
 * @param durability the state of an event when its publish call is acknowledged, such as {@code flushed to disk
 *     (fsync)}
 * @param order the scope of ordering, such as {@code per key}
 * @param delivery the delivery semantics, such as {@code at least once}
 */
public record Guarantees(String durability, String order, String delivery) {}
