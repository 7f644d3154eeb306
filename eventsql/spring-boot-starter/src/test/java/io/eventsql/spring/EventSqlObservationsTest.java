package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.micrometer.common.KeyValue;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.transport.SenderContext;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Observations of publishing and handling, and their attributes. */
class EventSqlObservationsTest {
    private static final EventPosition POSITION = new EventPosition("orders", 1, 2, 34);

    private final List<Observation.Context> stopped = new ArrayList<>();
    private final EventSqlObservations observations =
            new EventSqlObservations(registry(), EventSqlPublishConvention.DEFAULT, EventSqlHandleConvention.DEFAULT);

    /** Adds a header, as a tracer does. */
    private final class Recorder implements ObservationHandler<Observation.Context> {
        @Override
        public void onStart(Observation.Context context) {
            if (context instanceof SenderContext<?> sender) {
                put(sender);
            }
        }

        private <C> void put(SenderContext<C> sender) {
            sender.getSetter().set(sender.getCarrier(), "traceparent", "00-trace");
        }

        @Override
        public void onStop(Observation.Context context) {
            stopped.add(context);
        }

        @Override
        public boolean supportsContext(Observation.Context context) {
            return true;
        }
    }

    private ObservationRegistry registry() {
        ObservationRegistry registry = ObservationRegistry.create();
        registry.observationConfig().observationHandler(new Recorder());
        return registry;
    }

    private static StoredEvent stored(Map<String, String> headers) {
        return new StoredEvent(POSITION, "k", new byte[0], headers, Instant.EPOCH);
    }

    @Test
    void publish_traceContext_isAnAdditionalHeader() {
        Event event = Event.ofText("k", "x").withHeader("type", "placed");
        List<Event> published = new ArrayList<>();

        EventPosition position = observations.publish("orders", List.of(event), events -> {
            published.addAll(events);
            return POSITION;
        });

        assertThat(position).isEqualTo(POSITION);
        assertThat(published).containsExactly(event.withHeader("traceparent", "00-trace"));
        assertThat(stopped).singleElement().satisfies(context -> {
            assertThat(context.getName()).isEqualTo("eventsql.publish");
            assertThat(context.getContextualName()).isEqualTo("send orders");
            assertThat(context.getAllKeyValues())
                    .contains(
                            KeyValue.of("messaging.system", "eventsql"),
                            KeyValue.of("messaging.operation.type", "send"),
                            KeyValue.of("messaging.destination.name", "orders"),
                            KeyValue.of("messaging.destination.partition.id", "1/2"));
        });
    }

    @Test
    void publish_batch_isOneObservationWithItsSize() {
        observations.publish("orders", List.of(Event.ofText("a"), Event.ofText("b")), events -> {
            assertThat(events).allSatisfy(event -> assertThat(event.headers()).containsKey("traceparent"));
            return List.of(POSITION, POSITION);
        });

        assertThat(stopped)
                .singleElement()
                .satisfies(context -> assertThat(context.getHighCardinalityKeyValues())
                        .containsExactly(KeyValue.of("messaging.batch.message_count", "2")));
    }

    @Test
    void publish_failing_isAnErrorOfTheObservation() {
        IllegalStateException failure = new IllegalStateException("thrown by the test");

        assertThatThrownBy(() -> observations.publish("orders", List.of(Event.ofText("x")), events -> {
                    throw failure;
                }))
                .isSameAs(failure);

        assertThat(stopped)
                .singleElement()
                .satisfies(context -> assertThat(context.getError()).isSameAs(failure));
    }

    @Test
    void publishAsync_endsWithTheFuture() {
        CompletableFuture<EventPosition> stored = new CompletableFuture<>();
        CompletableFuture<EventPosition> returned =
                observations.publishAsync("orders", List.of(Event.ofText("x")), events -> stored);
        assertThat(stopped).isEmpty();

        stored.complete(POSITION);

        assertThat(returned).isCompletedWithValue(POSITION);
        assertThat(stopped)
                .singleElement()
                .satisfies(context -> assertThat(context.getError()).isNull());
    }

    @Test
    void publishAsync_failing_isAnErrorOfTheObservation() {
        IllegalStateException failure = new IllegalStateException("thrown by the test");
        assertThatThrownBy(() -> observations.publishAsync("orders", List.of(Event.ofText("x")), events -> {
                    throw failure;
                }))
                .isSameAs(failure);
        assertThat(observations.publishAsync(
                        "orders", List.of(Event.ofText("x")), events -> CompletableFuture.failedFuture(failure)))
                .isCompletedExceptionally();

        assertThat(stopped)
                .hasSize(2)
                .allSatisfy(context -> assertThat(context.getError()).isSameAs(failure));
    }

    @Test
    void handle_isDescribed_andItsFailureThrown() {
        Exception failure = new Exception("thrown by the test");
        assertThatThrownBy(() -> observations.handle("mailer", stored(Map.of("traceparent", "00-a")), () -> {
                    throw failure;
                }))
                .isSameAs(failure);

        assertThat(stopped).singleElement().satisfies(context -> {
            assertThat(context.getName()).isEqualTo("eventsql.process");
            assertThat(context.getContextualName()).isEqualTo("process orders");
            assertThat(context.getError()).isSameAs(failure);
            assertThat(((EventSqlHandleContext) context).getCarrier()).containsEntry("traceparent", "00-a");
            assertThat(context.getAllKeyValues())
                    .contains(
                            KeyValue.of("messaging.operation.type", "process"),
                            KeyValue.of("messaging.consumer.group.name", "mailer"),
                            KeyValue.of("messaging.eventsql.offset", "34"));
        });
    }

    @Test
    void handleBatch_ofOneTrace_continuesIt() throws Exception {
        StoredEvent event = stored(Map.of("traceparent", "00-a"));
        observations.handleBatch("mailer", List.of(event, event), () -> {});

        assertThat(stopped).singleElement().isInstanceOfSatisfying(EventSqlHandleContext.class, context -> {
            assertThat(context.getCarrier()).containsEntry("traceparent", "00-a");
            assertThat(context.linkedTraceParents()).isEmpty();
            assertThat(context.getAllKeyValues()).contains(KeyValue.of("messaging.batch.message_count", "2"));
        });
    }

    @Test
    void handleBatch_ofSeveralTraces_isLinkedToAllAndPartOfNone() throws Exception {
        observations.handleBatch(
                "mailer",
                List.of(stored(Map.of("traceparent", "00-a")), stored(Map.of("traceparent", "00-b")), stored(Map.of())),
                () -> {});
        observations.handleBatch(
                "mailer", List.of(stored(Map.of("traceparent", "00-a")), stored(Map.of("type", "x"))), () -> {});

        assertThat(stopped)
                .hasSize(2)
                .allSatisfy(context -> assertThat(((EventSqlHandleContext) context).getCarrier())
                        .isEmpty());
        assertThat(((EventSqlHandleContext) stopped.getFirst()).linkedTraceParents())
                .containsExactly("00-a", "00-b");
        assertThat(((EventSqlHandleContext) stopped.getLast()).linkedTraceParents())
                .containsExactly("00-a");
    }

    @Test
    void noRegistry_everythingIsCalledDirectly() throws Exception {
        List<Event> events = List.of(Event.ofText("x"));
        List<List<Event>> published = new ArrayList<>();
        EventSqlObservations none = EventSqlObservations.none();

        none.publish("orders", events, published::add);
        assertThat(none.publishAsync("orders", events, given -> {
                    published.add(given);
                    return CompletableFuture.completedFuture(POSITION);
                }))
                .isCompletedWithValue(POSITION);
        int[] handled = {0};
        none.handle("mailer", stored(Map.of()), () -> handled[0]++);
        none.handleBatch("mailer", List.of(stored(Map.of())), () -> handled[0]++);

        assertThat(published).hasSize(2).allSatisfy(given -> assertThat(given).isSameAs(events));
        assertThat(handled[0]).isEqualTo(2);
    }
}
