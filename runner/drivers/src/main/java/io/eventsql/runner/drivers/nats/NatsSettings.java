package io.eventsql.runner.drivers.nats;

import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.DriverSettings;
import io.nats.client.Connection;
import io.nats.client.JetStreamOptions;
import io.nats.client.Nats;
import io.nats.client.Options;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.DeliverPolicy;
import java.io.IOException;
import java.time.Duration;

/**
 * The settings of the client.
 *
 * @param connections the connections that publishers share
 * @param pendingEvents the maximum number of events of a connection that wait for their acknowledgement
 * @param pageEvents the events that a consumer asks for at once
 * @param acksPages whether a consumer acknowledges with the last event of a page all before it, instead of each
 * @param unackedEvents the number of events that a consumer has not acknowledged from which the server sends no more
 */
record NatsSettings(
        String url, int connections, int pendingEvents, int pageEvents, boolean acksPages, int unackedEvents) {
    private static final int CONNECTIONS_MAX = 16;
    private static final int EVENTS_MAX = 100_000;
    /** That of the server's Go client: the Java client has none. */
    private static final int DEFAULT_PENDING_EVENTS = 4_000;
    /** The client's. */
    private static final int DEFAULT_PAGE_EVENTS = 500;
    /** The server's. */
    private static final int DEFAULT_UNACKED_EVENTS = 1_000;

    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(30);

    /** @throws IllegalArgumentException if a variable or an option is missing or invalid; the message names it */
    static NatsSettings of(DriverSettings settings) {
        Variables options = new Variables(settings.options()::get);
        return new NatsSettings(
                settings.requiredVariable("NATS_URL"),
                options.number("connections", 1, 1, CONNECTIONS_MAX),
                options.number("pending_events", DEFAULT_PENDING_EVENTS, 1, EVENTS_MAX),
                options.number("page_events", DEFAULT_PAGE_EVENTS, 1, EVENTS_MAX),
                options.number("ack_pages", 0, 0, 1) == 1,
                options.number("unacked_events", DEFAULT_UNACKED_EVENTS, 1, EVENTS_MAX));
    }

    Connection connect() throws IOException, InterruptedException {
        return Nats.connect(Options.builder()
                .server(url)
                .maxMessagesInOutgoingQueue(2 * pendingEvents)
                .requestCleanupInterval(REQUEST_TIMEOUT)
                .build());
    }

    JetStreamOptions jetStream() {
        return JetStreamOptions.builder().requestTimeout(REQUEST_TIMEOUT).build();
    }

    ConsumerConfiguration consumer(String name) {
        return ConsumerConfiguration.builder()
                .durable(name)
                .deliverPolicy(DeliverPolicy.All)
                .ackPolicy(acksPages ? AckPolicy.All : AckPolicy.Explicit)
                .maxAckPending(unackedEvents)
                .build();
    }
}
