package io.eventsql.microbenchmarks;

import io.eventsql.Compaction;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** The last event of a key: searched, and returned. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 1,
        jvmArgs = {"-Xms512m", "-Xmx512m"})
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 3, time = 2)
public class KeyBenchmark {
    private static final String STREAM = "state";

    @SuppressWarnings("NullAway.Init") // open sets it
    private Server server;

    @Setup
    public void open() {
        server = new Server();
        server.createStream(StreamSpec.of(STREAM).withCompaction(Compaction.DEFAULT), 1_000, 0);
    }

    @TearDown
    public void close() {
        server.close();
    }

    @Benchmark
    public Optional<StoredEvent> latest() {
        return server.eventSql().latest(STREAM, "key-7");
    }
}
