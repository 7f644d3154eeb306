package io.eventsql.spring.example.billing;

import io.eventsql.spring.EventType;

/** Stored with the type {@code order-paid}, in version 2. */
// tag::type[]
@EventType(value = "order-paid", version = 2)
public record OrderPaid(String id, int cents, String currency) {}
// end::type[]
