package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What the template publishes: serialization, streams, errors, calls outside of transactions. */
class EventSqlTemplateIT extends TemplateFixture {
    static final class UpperCase extends PlainEventSerializer {
        @Override
        public Event serialize(String stream, OutgoingEvent event) {
            return Event.ofText(event.key(), event.payload().toString().toUpperCase(Locale.ROOT));
        }
    }

    @Test
    void publish_withoutTransaction_isStoredAtOnceAsJson() {
        run(app -> {
            app.events().publish("orders", "4711", new Order("4711", 3));

            StoredEvent stored = app.stored().getFirst();
            assertThat(stored.key()).isEqualTo("4711");
            assertThat(stored.text()).isEqualTo("{\"id\":\"4711\",\"total\":3}");
            assertThat(stored.headers())
                    .containsOnly(Map.entry("content-type", "application/json"), Map.entry("eventsql-type", "Order"));
        });
    }

    @Test
    void publish_tooLarge_namesTheProperty() {
        application().withPropertyValues("eventsql.max-event-bytes=10B").run(context -> {
            App app = new App(context);
            assertThatThrownBy(() -> app.events().publish("orders", "more than ten bytes"))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContaining("eventsql.max-event-bytes");
            app.transaction()
                    .executeWithoutResult(
                            status -> assertThatThrownBy(() -> app.events().publish("orders", "more than ten bytes"))
                                    .isInstanceOf(InvalidInputException.class)
                                    .hasMessageContaining("eventsql.max-event-bytes"));
        });
    }

    @Test
    void publish_inATransactionOfAnotherDatabase_isRejectedWithAdvice() {
        run(app -> new TransactionTemplate(new DataSourceTransactionManager(EVENTS_DB.dataSource()))
                .executeWithoutResult(status -> {
                    assertThatThrownBy(() -> app.events().publish("orders", "x"))
                            .isInstanceOf(TransactionNotJoinableException.class)
                            .hasMessageContaining("none of EventSQL's databases")
                            .hasMessageContaining("outsideTransaction()");
                    assertThatThrownBy(() -> app.events().publishAll("orders", List.of(OutgoingEvent.of("x"))))
                            .isInstanceOf(TransactionNotJoinableException.class);
                    assertThat(app.keys()).isEmpty();
                }));
    }

    @Test
    void outsideTransaction_rolledBack_staysStored() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.events().outsideTransaction().publish("orders", "audit", "1");
                app.events().outsideTransaction().publishAll("orders", List.of(OutgoingEvent.of("audit2", "2")));
                app.events()
                        .outsideTransaction()
                        .publishAsync("orders", "audit3", "3")
                        .join();
                assertThat(app.keys()).containsExactly("audit", "audit2", "audit3");
                status.setRollbackOnly();
            });

            assertThat(app.keysInTheEnd()).containsExactly("audit", "audit2", "audit3");
        });
    }

    @Test
    void publishAsync_inATransaction_isRejected() {
        run(app -> {
            assertThat(app.events().publishAsync("orders", "k", "1").join().offset())
                    .isEqualTo(app.from());
            assertThat(app.events()
                            .publishAllAsync("orders", List.of(OutgoingEvent.of("2"), OutgoingEvent.of("3")))
                            .join())
                    .hasSize(2);

            app.transaction().executeWithoutResult(status -> {
                assertThatThrownBy(() -> app.events().publishAsync("orders", "k", "x"))
                        .isInstanceOf(TransactionNotJoinableException.class)
                        .hasMessageContaining("publishAsync");
                assertThatThrownBy(() -> app.events().publishAllAsync("orders", List.of(OutgoingEvent.of("x"))))
                        .isInstanceOf(TransactionNotJoinableException.class);
            });

            assertThat(app.keys()).hasSize(3);
        });
    }

    @Test
    void publish_missingStream_isCreatedIfConfigured() {
        run(app -> {
            app.events().publish("invoices", "directly");
            app.transaction().executeWithoutResult(status -> app.events().publish("payments", "in a transaction"));

            assertThat(app.eventSql().streams()).contains(StreamSpec.of("invoices"), StreamSpec.of("payments"));
            assertThatThrownBy(() -> app.events().publish("No Stream", "x"))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContaining("stream.name");
        });
    }

    @Test
    void publish_missingStream_isRejectedAndTheTransactionContinues() {
        application().run(context -> {
            App app = new App(context);
            app.transaction().executeWithoutResult(status -> {
                assertThatThrownBy(() -> app.events().publish("invoices", "x"))
                        .isInstanceOf(UnknownStreamException.class)
                        .hasMessageContaining("eventsql.streams[invoices].partitions=10")
                        .hasMessageContaining("eventsql.create-missing-streams=true");
                app.events().publish("orders", "known", "y");
            });

            await().until(() -> !app.keys().isEmpty());
            assertThat(app.keys()).containsExactly("known");
        });
    }

    @Test
    void publish_customizersAndSerializerOfTheApplication_areUsed() {
        application()
                .withBean(EventSerializer.class, UpperCase::new)
                .withBean(
                        "tenant",
                        OutgoingEventCustomizer.class,
                        () -> (stream, payload, event) -> event.withHeader("tenant", stream + payload))
                .withPropertyValues("eventsql.cloud-events.source=/shop")
                .run(context -> {
                    App app = new App(context);
                    app.events().publish("orders", "k", "text");

                    StoredEvent stored = app.stored().getFirst();
                    assertThat(stored.text()).isEqualTo("TEXT");
                    assertThat(stored.headers())
                            .containsEntry("tenant", "orderstext")
                            .containsEntry("ce_source", "/shop")
                            .containsEntry("ce_type", "String");
                });
    }
}
