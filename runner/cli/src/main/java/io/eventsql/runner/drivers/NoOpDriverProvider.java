package io.eventsql.runner.drivers;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** {@code no-op}: acknowledges immediately, stores nothing and delivers nothing. Measures the load generator itself. */
public final class NoOpDriverProvider implements DriverProvider {

    @Override
    public String name() {
        return "no-op";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees("none: events are dropped", "none", "never");
    }

    @Override
    public Driver open(DriverSettings settings) {
        return new NoOpDriver();
    }

    private static final class NoOpDriver implements Driver {
        private static final CompletionStage<?> DONE = CompletableFuture.completedStage(null);

        @Override
        public String version() {
            return "nothing";
        }

        @Override
        public void createStream(String name, int partitions) {}

        @Override
        public PublishTarget publisher(String stream) {
            return new PublishTarget() {
                @Override
                public void publish(List<Event> events) {}

                @Override
                public CompletionStage<?> publishAsync(List<Event> events) {
                    return DONE;
                }
            };
        }

        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
            throw new UnsupportedOperationException("no-op delivers nothing: set consumers and replayers to 0");
        }

        @Override
        public void clear(String stream) {}

        @Override
        public void close() {}
    }
}
