package io.eventsql.spring.example.orders;

/** The payload of the event. */
public record OrderPlaced(String id, int cents) {}
