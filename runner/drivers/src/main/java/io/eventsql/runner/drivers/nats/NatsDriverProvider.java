package io.eventsql.runner.drivers.nats;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.driver.PublishTarget;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.Message;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * NATS JetStream: asynchronous publishing, which a call waits for; a consumer is a durable pull consumer. Variables:
 * {@code NATS_URL}; {@code NATS_SYNC} describes the server's setting. Options: {@code connections} (1), {@code
 * pending_events} (4000), {@code page_events} (500), {@code ack_pages} (0 or 1), {@code unacked_events} (1000), see {@link
 * NatsSettings}.
 */
public final class NatsDriverProvider implements DriverProvider {
    @Override
    public String name() {
        return "nats";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                durability(environment), "all events of a connection", "at least once to a durable consumer");
    }

    private static String durability(Map<String, String> environment) {
        return switch (environment.getOrDefault("NATS_SYNC", "")) {
            case "always" -> "flushed to disk (fsync)";
            case "interval" -> "in the page cache; flushed to disk every 2 minutes";
            default -> "in the page cache; flush policy unknown (set NATS_SYNC)";
        };
    }

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    @Override
    public Driver open(DriverSettings settings) throws IOException, InterruptedException {
        NatsDriver driver = new NatsDriver(NatsSettings.of(settings));
        try {
            for (int i = 0; i < driver.settings.connections(); i++) {
                driver.connections.add(driver.settings.connect());
            }
            return driver;
        } catch (IOException | InterruptedException | RuntimeException e) {
            driver.close();
            throw e;
        }
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new NatsPlainProgram());
    }

    /** Streams of a NATS server, stored in files. Stores keys as headers. Thread-safe. */
    private static final class NatsDriver implements Driver {
        private final NatsSettings settings;
        private final List<Connection> connections = new ArrayList<>();

        NatsDriver(NatsSettings settings) {
            this.settings = settings;
        }

        private Connection connection() {
            return connections.getFirst();
        }

        @Override
        public String version() {
            return "NATS " + connection().getServerInfo().getVersion();
        }

        @Override
        public void createStream(String name, int partitions) throws IOException, JetStreamApiException {
            NatsAppend.createStream(connection(), name);
        }

        /** Calls with one keyed event use the connection of the key, so that they keep their order. */
        @Override
        public PublishTarget publisher(String stream) {
            List<NatsAppend> appends = new ArrayList<>();
            try {
                for (Connection connection : connections) {
                    appends.add(new NatsAppend(settings, connection, stream));
                }
            } catch (IOException e) {
                throw new IllegalStateException("Cannot publish to " + stream + ": " + e.getMessage(), e);
            }
            AtomicInteger turn = new AtomicInteger();
            return new PublishTarget() {
                @Override
                public void publish(List<Event> events) {
                    publishAsync(events).toCompletableFuture().join();
                }

                @Override
                public CompletionStage<?> publishAsync(List<Event> events) {
                    String key = events.getFirst().key();
                    int number = key == null ? turn.getAndIncrement() : events.size() == 1 ? key.hashCode() : 0;
                    return appends.get(Math.floorMod(number, appends.size())).append(events);
                }
            };
        }

        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener)
                throws IOException, JetStreamApiException {
            return new NatsSubscription(
                    settings,
                    connection().getStreamContext(stream),
                    consumer,
                    message -> listener.delivered(List.of(message), NatsSubscription::key, Message::getData));
        }

        @Override
        public void clear(String stream) throws IOException, JetStreamApiException {
            connection().jetStreamManagement().purgeStream(stream);
        }

        @Override
        public void close() {
            try {
                for (Connection connection : connections) {
                    connection.close();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
