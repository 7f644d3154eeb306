package io.eventsql.spring.example.mail;

import io.eventsql.spring.EventSqlListener;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.stereotype.Service;

/** Handles the orders of the other application. */
// tag::mailer[]
@Service
public class Mailer {
    @EventSqlListener(stream = "orders", consumer = "mailer")
    void on(OrderPlaced order) {
        send("Your order " + order.id());
    }
    // end::mailer[]

    private final List<String> sent = new CopyOnWriteArrayList<>();

    private void send(String mail) {
        sent.add(mail);
    }

    /** The mails, in their order. */
    public List<String> sent() {
        return sent;
    }
}
