package io.eventsql.spring.example.orders;

/** What happened, as the event says it. */
public record OrderPlaced(String id, int cents) {}
