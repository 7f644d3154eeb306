package io.eventsql.runner.spring;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.runner.driver.BusinessTransactions;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.OutgoingEvent;
import io.eventsql.spring.PlainEventSerializer;
import io.eventsql.spring.TransactionTracker;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Spring transactions as an application runs them. Each writes a business row and its events, either into a plain table
 * or through the library's template.
 */
public final class SpringTransactions implements BusinessTransactions {

    @Override
    public Targets open(EventSql eventSql, DataSource dataSource, String run) {
        return new SpringTargets(eventSql, dataSource, run);
    }

    private static final class SpringTargets implements Targets {
        private final JdbcTemplate jdbc;
        private final TransactionTemplate transactions;
        private final EventSqlTemplate template;
        private final String orders;
        private final String plainOutbox;

        SpringTargets(EventSql eventSql, DataSource dataSource, String run) {
            this.jdbc = new JdbcTemplate(dataSource);
            JdbcTransactionManager manager = new JdbcTransactionManager(dataSource);
            this.transactions = new TransactionTemplate(manager);
            new TransactionTracker().track(manager);
            this.template = EventSqlTemplate.builder(eventSql)
                    .serializer(new PlainEventSerializer())
                    .build();
            this.orders = "limits_order_" + run;
            this.plainOutbox = "limits_plain_outbox_" + run;
            jdbc.execute(
                    "CREATE TABLE " + orders
                            + " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text NOT NULL, cents int NOT NULL)");
            jdbc.execute(
                    "CREATE TABLE " + plainOutbox
                            + " (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stream text NOT NULL, key text,"
                            + " value bytea NOT NULL, headers json, created_at timestamptz NOT NULL DEFAULT clock_timestamp())");
        }

        @Override
        public PublishTarget plainRow(String stream) {
            String sql = "INSERT INTO " + plainOutbox + " (stream, key, value) VALUES (?, ?, ?)";
            return target(events -> {
                for (Event event : events) {
                    jdbc.update(sql, stream, event.key(), event.value());
                }
            });
        }

        @Override
        public PublishTarget publishing(String stream) {
            return target(events -> {
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

        private PublishTarget target(Consumer<List<Event>> writing) {
            String sql = "INSERT INTO " + orders + " (customer, cents) VALUES (?, ?)";
            return new PublishTarget() {
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
        }
    }
}
