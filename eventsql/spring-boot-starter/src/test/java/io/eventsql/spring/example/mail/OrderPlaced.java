package io.eventsql.spring.example.mail;

/** The part of the payload that this application reads. */
public record OrderPlaced(String id) {}
