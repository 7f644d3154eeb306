package io.eventsql.microbenchmarks;

import io.eventsql.internal.sql.HeadersJson;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** The stored form of an event's headers. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 1,
        jvmArgs = {"-Xms512m", "-Xmx512m"})
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
public class HeadersBenchmark {
    private final Map<String, String> headers = Server.events(1, 2).getFirst().headers();
    private final String json = HeadersJson.encode(headers);

    @Benchmark
    public String encode() {
        return HeadersJson.encode(headers);
    }

    @Benchmark
    public Map<String, String> decode() {
        return HeadersJson.decode(json);
    }
}
