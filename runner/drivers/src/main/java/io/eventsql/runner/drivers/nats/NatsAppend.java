package io.eventsql.runner.drivers.nats;

import io.eventsql.Event;
import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.api.PublishAck;
import io.nats.client.api.StorageType;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.impl.Headers;
import io.nats.client.impl.NatsMessage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;

/** Publishes to a stream over one connection. Thread-safe. */
final class NatsAppend {
    static final String KEY = "key";

    private final JetStream jetStream;
    private final String subject;
    private final Semaphore pending;

    NatsAppend(NatsSettings settings, Connection connection, String stream) throws IOException {
        this.jetStream = connection.jetStream(settings.jetStream());
        this.subject = stream;
        this.pending = new Semaphore(settings.pendingEvents());
    }

    /** Creates a stream that is stored in files. */
    static void createStream(Connection connection, String name) throws IOException, JetStreamApiException {
        connection
                .jetStreamManagement()
                .addStream(StreamConfiguration.builder()
                        .name(name)
                        .subjects(name)
                        .storageType(StorageType.File)
                        .build());
    }

    /** Completes when all events are acknowledged. Blocks while too many are not. */
    CompletableFuture<?> append(List<Event> events) {
        if (events.size() == 1) {
            return append(events.getFirst());
        }
        List<CompletableFuture<PublishAck>> answers = new ArrayList<>(events.size());
        events.forEach(event -> answers.add(append(event)));
        return CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new));
    }

    private CompletableFuture<PublishAck> append(Event event) {
        pending.acquireUninterruptibly();
        try {
            String key = event.key();
            NatsMessage.Builder message = NatsMessage.builder().subject(subject).data(event.value());
            if (key != null) {
                message.headers(new Headers().add(KEY, key));
            }
            CompletableFuture<PublishAck> answer = jetStream.publishAsync(message.build());
            return answer.whenComplete((ack, failure) -> pending.release());
        } catch (RuntimeException e) {
            pending.release();
            throw e;
        }
    }
}
