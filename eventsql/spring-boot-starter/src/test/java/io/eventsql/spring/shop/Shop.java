package io.eventsql.spring.shop;

import io.eventsql.spring.EventSqlTemplate;
import org.jooq.DSLContext;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;

/** A typical application. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
class Shop {

    @Bean
    Orders orders(EventSqlTemplate events, JdbcTemplate jdbc) {
        return new Orders(events, jdbc);
    }

    record OrderPlaced(String id) {}

    static class Orders {
        private final EventSqlTemplate events;
        private final JdbcTemplate jdbc;

        Orders(EventSqlTemplate events, JdbcTemplate jdbc) {
            this.events = events;
            this.jdbc = jdbc;
        }

        @Transactional
        public void place(OrderPlaced order) {
            jdbc.update("INSERT INTO orders VALUES (?)", order.id());
            events.publish("orders", order.id(), order);
        }

        @Transactional
        public void placeTwice(OrderPlaced order) {
            place(order);
            place(order);
        }

        @Transactional
        public void placeWithJooq(DSLContext dsl, OrderPlaced order) {
            dsl.execute("INSERT INTO orders VALUES (?)", order.id());
            events.publish("orders", order.id(), order);
        }
    }
}
