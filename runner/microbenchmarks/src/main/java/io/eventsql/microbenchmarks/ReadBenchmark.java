package io.eventsql.microbenchmarks;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import java.util.List;
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

/** A page of stored events: fetched, decoded by the driver, and returned. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 1,
        jvmArgs = {"-Xms512m", "-Xmx512m"})
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 3, time = 2)
public class ReadBenchmark {
    private static final int EVENTS = 1_000;

    /** How many headers each event has. */
    @Param({"0", "2"})
    @SuppressWarnings("NullAway.Init") // JMH sets it
    String headers;

    @SuppressWarnings("NullAway.Init") // open sets it
    private Server server;

    @SuppressWarnings("NullAway.Init") // open sets it
    private EventPosition first;

    @Setup
    public void open() {
        server = new Server();
        first = server.createStream(StreamSpec.of("stored"), EVENTS, Integer.parseInt(headers));
    }

    @TearDown
    public void close() {
        server.close();
    }

    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public List<StoredEvent> page() {
        return server.eventSql().read(first, EVENTS);
    }
}
