package io.eventsql.spring.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** An order as JPA stores it. */
@Entity
@Table(name = "orders")
class PlacedOrder {
    @Id
    private String id;

    protected PlacedOrder() {}

    PlacedOrder(String id) {
        this.id = id;
    }
}
