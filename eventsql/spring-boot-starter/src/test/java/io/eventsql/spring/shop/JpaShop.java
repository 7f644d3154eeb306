package io.eventsql.spring.shop;

import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.shop.Shop.OrderPlaced;
import jakarta.persistence.EntityManager;
import jakarta.persistence.PersistenceContext;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.event.TransactionPhase;
import org.springframework.transaction.event.TransactionalEventListener;

/** The part of the application that stores its orders with JPA. */
@Configuration(proxyBeanMethods = false)
class JpaShop {

    @Bean
    JpaOrders jpaOrders(EventSqlTemplate events, ApplicationEventPublisher inside) {
        return new JpaOrders(events, inside);
    }

    /** An application event of Spring. */
    record Placed(String id) {}

    /** An application event whose listener publishes without waiting. */
    record Announced(String id) {}

    static class JpaOrders {
        private final EventSqlTemplate events;
        private final ApplicationEventPublisher inside;

        @PersistenceContext
        private EntityManager entities;

        JpaOrders(EventSqlTemplate events, ApplicationEventPublisher inside) {
            this.events = events;
            this.inside = inside;
        }

        @Transactional
        public void place(OrderPlaced order) {
            entities.persist(new PlacedOrder(order.id()));
            events.publish("orders", order.id(), order);
        }

        @Transactional
        public void placeAndFail(OrderPlaced order) {
            place(order);
            entities.flush();
            throw new IllegalStateException("after the flush");
        }

        @Transactional(propagation = Propagation.REQUIRES_NEW)
        public void placeAlone(OrderPlaced order) {
            place(order);
        }

        @Transactional(readOnly = true)
        public void placeReadOnly(OrderPlaced order) {
            place(order);
        }

        @Transactional
        public void placeAndTell(OrderPlaced order) {
            entities.persist(new PlacedOrder(order.id()));
            inside.publishEvent(new Placed(order.id()));
        }

        @TransactionalEventListener(phase = TransactionPhase.BEFORE_COMMIT)
        public void beforeCommit(Placed placed) {
            events.publish("orders", placed.id() + " before commit", placed);
        }

        @TransactionalEventListener
        public void afterCommit(Placed placed) {
            events.publish("orders", placed.id() + " after commit", placed);
        }

        @Transactional
        public void placeAndAnnounce(OrderPlaced order) {
            entities.persist(new PlacedOrder(order.id()));
            inside.publishEvent(new Announced(order.id()));
        }

        @TransactionalEventListener(phase = TransactionPhase.BEFORE_COMMIT)
        public void announceBeforeCommit(Announced announced) {
            events.publishAsync("orders", announced.id(), announced).join();
        }

        @Transactional
        public void note(String id) {
            entities.persist(new OrderNote(id));
        }

        /** Publishes in the flush that updates the note, before the same flush inserts the order. */
        @Transactional
        public void changeNoteAndPlace(String note, OrderPlaced order) {
            change(note);
            entities.persist(new PlacedOrder(order.id()));
        }

        @Transactional
        public void changeNoteAndFlush(String note) {
            change(note);
            entities.flush();
        }

        private void change(String note) {
            entities.find(OrderNote.class, note).change("changed", () -> events.publish("orders", note, "changed"));
        }
    }
}
