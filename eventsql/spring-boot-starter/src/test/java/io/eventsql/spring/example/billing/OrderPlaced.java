package io.eventsql.spring.example.billing;

/** Stored with the type {@code OrderPlaced}. */
public record OrderPlaced(String id, int cents) {}
