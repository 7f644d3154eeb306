package io.eventsql.internal.consume;

/** A member for which pages are fetched, and what receives them. */
record Subscriber(ShardMember member, Dispatcher dispatcher, OutOfRangeResolver outOfRange) {}
