package io.eventsql.runner.limits;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.OutgoingEvent;
import io.eventsql.spring.PlainEventSerializer;
import io.eventsql.spring.TransactionTracker;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Spring transactions as an application runs them. Each writes a business row and its events, either into a plain table
 * or through the library's template.
 */
final class BusinessTransactions {
    private final LimitsContext context;
    private final JdbcTemplate jdbc;
    private final TransactionTemplate transactions;
    private final EventSqlTemplate template;
    private final String orders;
    private final String plainOutbox;

    /** Creates the tables. */
    BusinessTransactions(LimitsContext context) {
        this.context = context;
        this.jdbc = new JdbcTemplate(context.dataSource());
        JdbcTransactionManager manager = new JdbcTransactionManager(context.dataSource());
        this.transactions = new TransactionTemplate(manager);
        new TransactionTracker().track(manager);
        this.template = EventSqlTemplate.builder(context.eventSql())
                .serializer(new PlainEventSerializer())
                .build();
        this.orders = "limits_order_" + context.run();
        this.plainOutbox = "limits_plain_outbox_" + context.run();
        jdbc.execute("CREATE TABLE " + orders
                + " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text NOT NULL, cents int NOT NULL)");
        jdbc.execute("CREATE TABLE " + plainOutbox
                + " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stream text NOT NULL, key text,"
                + " value bytea NOT NULL, headers json, created_at timestamptz NOT NULL DEFAULT clock_timestamp())");
    }

    /** Returns a load of transactions that insert their events into a plain table that no consumer reads. */
    LoadContext plainRowLoad(String stream, int eventsPerTransaction) {
        String sql = "INSERT INTO " + plainOutbox + " (stream, key, value) VALUES (?, ?, ?)";
        return loadContext(eventsPerTransaction, events -> {
            for (Event event : events) {
                jdbc.update(sql, stream, event.key(), event.value());
            }
        });
    }

    /** Returns a load of transactions that publish their events. */
    LoadContext publishLoad(String stream, int eventsPerTransaction) {
        return loadContext(eventsPerTransaction, events -> {
            if (events.size() == 1) {
                template.publish(
                        stream, events.getFirst().key(), events.getFirst().value());
            } else {
                template.publishAll(
                        stream,
                        events.stream()
                                .map(event -> OutgoingEvent.of(event.key(), event.value()))
                                .toList());
            }
        });
    }

    private LoadContext loadContext(int eventsPerTransaction, Consumer<List<Event>> writing) {
        String sql = "INSERT INTO " + orders + " (customer, cents) VALUES (?, ?)";
        PublishTarget target = new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                transactions.executeWithoutResult(status -> {
                    jdbc.update(sql, "Ada Lovelace", 4_711);
                    writing.accept(events);
                });
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                publish(events); // a transaction belongs to its thread
                return CompletableFuture.completedFuture(events);
            }
        };
        return context.load(target, eventsPerTransaction, List.of());
    }
}
