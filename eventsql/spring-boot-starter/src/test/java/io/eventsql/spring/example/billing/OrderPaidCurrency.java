package io.eventsql.spring.example.billing;

import io.eventsql.spring.EventUpcaster;
import org.springframework.stereotype.Component;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** Version 1 had no currency. */
// tag::upcaster[]
@Component
class OrderPaidCurrency implements EventUpcaster {
    @Override
    public Class<?> type() {
        return OrderPaid.class;
    }

    @Override
    public int fromVersion() {
        return 1;
    }

    @Override
    public JsonNode upcast(JsonNode payload) {
        return ((ObjectNode) payload).put("currency", "EUR");
    }
}
// end::upcaster[]
