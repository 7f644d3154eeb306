package io.eventsql.microbenchmarks;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.StreamSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** The way of an event from the call to its position: validation, routing, batch, driver, completed call. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 1,
        jvmArgs = {"-Xms512m", "-Xmx512m"})
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 3, time = 2)
public class PublishBenchmark {
    private static final String STREAM = "published";
    private static final int EVENTS = 100;

    /** How many headers each event has. */
    @Param({"0", "2"})
    @SuppressWarnings("NullAway.Init") // JMH sets it
    String headers;

    @SuppressWarnings("NullAway.Init") // open sets it
    private Server server;

    private List<Event> events = List.of();

    @Setup
    public void open() {
        server = new Server();
        server.eventSql().createStream(StreamSpec.of(STREAM));
        events = Server.events(EVENTS, Integer.parseInt(headers));
    }

    @TearDown
    public void close() {
        server.close();
    }

    /** One call with all events. */
    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public List<EventPosition> batch() {
        return server.eventSql().publisher().publishAll(STREAM, events);
    }

    /** One call for one event, which is a batch of its own. */
    @Benchmark
    public EventPosition single() {
        return server.eventSql().publisher().publish(STREAM, events.getFirst());
    }

    /** One call for each event, whose positions are awaited together. */
    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public long asynchronous() {
        EventPublisher publisher = server.eventSql().publisher();
        List<CompletableFuture<EventPosition>> calls = new ArrayList<>(EVENTS);
        for (Event event : events) {
            calls.add(publisher.publishAsync(STREAM, event));
        }
        long sum = 0;
        for (CompletableFuture<EventPosition> call : calls) {
            sum += call.join().offset();
        }
        return sum;
    }
}
