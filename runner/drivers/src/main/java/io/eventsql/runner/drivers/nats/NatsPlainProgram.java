package io.eventsql.runner.drivers.nats;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberedValues;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainLoop;
import io.eventsql.runner.driver.PlainProgram;
import io.nats.client.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/** The client alone: callers that wait, or a thread per connection that publishes up to the limit of pending events. */
final class NatsPlainProgram implements PlainProgram {

    @Override
    public Rates run(DriverSettings settings, Load load) throws Exception {
        NatsSettings nats = NatsSettings.of(settings);
        String stream = "plain_" + BenchmarkEvent.randomRun();
        NumberedValues values = new NumberedValues(BenchmarkEvent.randomRun(), load.eventBytes());
        Supplier<List<Event>> events = () -> PlainLoop.events(values::next, load.eventsPerCall());
        AtomicLong arrived = new AtomicLong();
        AtomicLong stored = new AtomicLong();
        AtomicLong sent = new AtomicLong();
        List<Connection> connections = new ArrayList<>();
        try {
            List<NatsAppend> appends = new ArrayList<>();
            for (int i = 0; i < nats.connections(); i++) {
                connections.add(nats.connect());
                if (i == 0) {
                    NatsAppend.createStream(connections.getFirst(), stream);
                }
                appends.add(new NatsAppend(nats, connections.get(i), stream));
            }
            List<PlainLoop.Caller> callers = new ArrayList<>();
            for (int i = 0; i < (load.async() ? nats.connections() : load.callers()); i++) {
                NatsAppend append = appends.get(i % appends.size());
                callers.add(
                        load.async()
                                ? () -> {
                                    sent.incrementAndGet();
                                    var unused = append.append(events.get()).thenRun(stored::incrementAndGet);
                                }
                                : () -> append.append(events.get()).join());
            }
            NatsSubscription consuming = new NatsSubscription(
                    nats,
                    connections.getFirst().getStreamContext(stream),
                    "plain",
                    message -> arrived.incrementAndGet());
            try {
                return PlainLoop.run(load, callers, () -> awaitStored(sent, stored), arrived::get);
            } finally {
                consuming.close();
                connections.getFirst().jetStreamManagement().deleteStream(stream);
            }
        } finally {
            for (Connection connection : connections) {
                connection.close();
            }
        }
    }

    private static void awaitStored(AtomicLong sent, AtomicLong stored) throws InterruptedException {
        while (stored.get() < sent.get()) {
            Thread.sleep(1);
        }
    }
}
