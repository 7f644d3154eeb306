package io.eventsql.spring.example.orders;

import io.eventsql.spring.EventSqlTemplate;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** Writes an order and its event together. */
// tag::orders[]
@Service
public class Orders {
    private final JdbcTemplate jdbc;
    private final EventSqlTemplate events;

    Orders(JdbcTemplate jdbc, EventSqlTemplate events) {
        this.jdbc = jdbc;
        this.events = events;
    }

    @Transactional
    public void place(OrderPlaced order) {
        jdbc.update("INSERT INTO orders (id, cents) VALUES (?, ?)", order.id(), order.cents());
        events.publish("orders", order.id(), order); // both or neither
    }
}
// end::orders[]
