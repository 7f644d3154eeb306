package io.eventsql.spring.test;

import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlTemplate;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.transaction.annotation.Transactional;

/** A typical application. */
@SpringBootConfiguration
@EnableAutoConfiguration
class Shop {
    record OrderPlaced(String id, int items) {}

    @Bean
    Orders orders(EventSqlTemplate events) {
        return new Orders(events);
    }

    @Bean
    Mailer mailer() {
        return new Mailer();
    }

    static class Orders {
        private final EventSqlTemplate events;

        Orders(EventSqlTemplate events) {
            this.events = events;
        }

        @Transactional
        public void place(OrderPlaced order) {
            events.publish("orders", order.id(), order);
        }
    }

    static class Mailer {
        final List<String> mails = new CopyOnWriteArrayList<>();

        @EventSqlListener(stream = "orders", consumer = "mailer")
        void on(OrderPlaced order) {
            if (order.items() < 0) {
                throw new IllegalStateException("thrown by the test");
            }
            mails.add(order.id());
        }
    }
}
