package io.eventsql.spring.example.mail;

/** What this application needs to know of an order. */
public record OrderPlaced(String id) {}
