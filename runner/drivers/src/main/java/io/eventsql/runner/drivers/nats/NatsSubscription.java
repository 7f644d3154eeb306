package io.eventsql.runner.drivers.nats;

import io.nats.client.ConsumeOptions;
import io.nats.client.JetStreamApiException;
import io.nats.client.Message;
import io.nats.client.MessageConsumer;
import io.nats.client.StreamContext;
import java.io.IOException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A durable consumer of a stream. Acknowledges events after their delivery. */
final class NatsSubscription implements AutoCloseable {
    private final NatsSettings settings;
    private final Consumer<Message> listener;
    private final MessageConsumer consumer;
    /** The events since the last acknowledgement. Changed by the thread of the deliveries. */
    private int unacked;

    private boolean closed;

    /** Starts consuming at the first event, on a thread of the client. */
    NatsSubscription(NatsSettings settings, StreamContext stream, String name, Consumer<Message> listener)
            throws IOException, JetStreamApiException {
        this.settings = settings;
        this.listener = listener;
        ConsumeOptions options =
                ConsumeOptions.builder().batchSize(settings.pageEvents()).build();
        this.consumer = stream.createOrUpdateConsumer(settings.consumer(name)).consume(options, this::deliver);
    }

    private synchronized void deliver(Message message) {
        if (closed) {
            return;
        }
        listener.accept(message);
        unacked++;
        if (!settings.acksPages()
                || unacked >= Math.min(settings.pageEvents(), settings.unackedEvents() / 2)
                || message.metaData().pendingCount() == 0) {
            message.ack();
            unacked = 0;
        }
    }

    static @Nullable String key(Message message) {
        return message.hasHeaders() ? message.getHeaders().getFirst(NatsAppend.KEY) : null;
    }

    /** Waits for a delivery in progress. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        try {
            consumer.close();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Exception e) {
            throw new IllegalStateException("Closing the consumer failed: " + e.getMessage(), e);
        }
    }
}
