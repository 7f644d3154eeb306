package io.eventsql.spring.example.billing;

import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlHandler;
import io.eventsql.spring.EventSqlListener;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.stereotype.Service;

/** Handles events of several types. */
// tag::billing[]
@Service
@EventSqlListener(stream = "orders", consumer = "billing")
public class Billing {
    @EventSqlHandler
    void on(OrderPlaced order) {
        book("invoice " + order.id());
    }

    @EventSqlHandler
    void on(OrderPaid order) {
        book("payment " + order.id() + " " + order.currency());
    }

    @EventSqlHandler(isDefault = true)
    void onOther(StoredEvent event) {} // of no interest here
    // end::billing[]

    private final List<String> booked = new CopyOnWriteArrayList<>();

    private void book(String entry) {
        booked.add(entry);
    }

    /** The entries, in their order. */
    public List<String> booked() {
        return booked;
    }
}
