package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Callbacks of a consumer listener. */
class ConsumerListenerIT extends ConsumerFixture {
    /** Records its callbacks. */
    private static final class RecordingListener implements ConsumerListener {
        private final List<String> calls = new CopyOnWriteArrayList<>();

        @Override
        public void partitionAssigned(ConsumerPartition partition, long nextOffset) {
            calls.add("assigned " + partition.consumer() + " " + partition.partition() + " at " + nextOffset);
        }

        @Override
        public void partitionRevoked(ConsumerPartition partition, Reason reason) {
            calls.add("revoked " + partition.partition() + " " + reason);
        }

        @Override
        public void handled(ConsumerPartition partition, int events, long nanos) {
            assertThat(nanos).isPositive();
            calls.add("handled " + events);
        }

        @Override
        public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
            calls.add("failed " + event.text() + " " + attempt + " " + willRetry + " " + error.getMessage());
        }

        @Override
        public void deadLettered(StoredEvent event, String consumer, int attempts, Throwable error) {
            calls.add("dead-lettered " + event.text() + " " + attempts + " " + error.getMessage());
        }

        @Override
        public void keyParked(StoredEvent event, String consumer, int attempts, Throwable error) {
            calls.add("parked " + event.key() + " " + attempts + " " + error.getMessage());
        }

        @Override
        public void lag(ConsumerPartition partition, long lag) {
            calls.add("lag " + lag);
        }
    }

    private EventSql process(ConsumerListener... listeners) {
        EventSqlBuilder builder = EventSql.builder(cluster.dataSources())
                .settings(Settings.builder().pollInterval(Duration.ofMillis(50)).build());
        List.of(listeners).forEach(builder::listener);
        return builder.build();
    }

    @Test
    void listener_fromAssignmentToRelease_isCalledInOrder() {
        String stream = newStream(1);
        eventSql.publisher().publish(stream, Event.ofText("k", "good"));
        eventSql.publisher().publish(stream, Event.ofText("k", "bad"));
        eventSql.publisher().publish(stream, Event.ofText("dead without a key"));
        RecordingListener recorded = new RecordingListener();
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        try (EventSql process = process(recorded)) {
            Subscription member = process.subscribe(spec, event -> {
                if (!event.text().equals("good")) {
                    throw new IllegalStateException("oh");
                }
            });
            awaitLag(stream, 0);
            await().until(() -> recorded.calls.contains("lag 0"));
            member.close();
        }
        List<String> withoutLag =
                recorded.calls.stream().filter(call -> !call.startsWith("lag")).toList();
        assertThat(withoutLag)
                .containsExactly(
                        "assigned c 0 at 0",
                        "handled 1",
                        "failed bad 1 true oh",
                        "failed bad 2 false oh",
                        "parked k 2 oh",
                        "failed dead without a key 1 true oh",
                        "failed dead without a key 2 false oh",
                        "dead-lettered dead without a key 2 oh",
                        "revoked 0 RELEASED");
    }

    @Test
    void listener_throws_affectsNeitherHandlersNorOtherListeners() {
        String stream = newStream(1);
        RecordingListener recorded = new RecordingListener();
        ConsumerListener broken = new ConsumerListener() {
            @Override
            public void handled(ConsumerPartition partition, int events, long nanos) {
                throw new IllegalStateException("broken listener");
            }

            @Override
            public void partitionAssigned(ConsumerPartition partition, long nextOffset) {
                throw new AssertionError("broken listener");
            }

            @Override
            public void lag(ConsumerPartition partition, long lag) {
                throw new IllegalStateException("broken listener");
            }
        };
        publish(stream, 0, 5, 5);
        try (EventSql process = process(broken, recorded);
                Subscription ignored = process.subscribe(consumer(stream), event -> {})) {
            awaitLag(stream, 0);
            await().until(() -> recorded.calls.contains("lag 0"));
            publish(stream, 5, 10, 5);
            awaitLag(stream, 0);
        }
        assertThat(recorded.calls.stream().filter("handled 1"::equals)).hasSize(10);
    }
}
