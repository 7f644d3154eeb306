package io.eventsql.microbenchmarks;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** The way of a stored event to the handler and its committed offset: a new consumer reads a stream from its start. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 1,
        jvmArgs = {"-Xms512m", "-Xmx512m"})
@Warmup(iterations = 3)
@Measurement(iterations = 3)
public class ConsumeBenchmark {
    private static final String STREAM = "consumed";
    private static final int EVENTS = 100_000;
    private static final int KEYS_AT_A_TIME = 8;
    private static final long TIMEOUT_SECONDS = 120;

    @SuppressWarnings("NullAway.Init") // open sets it
    private Server server;

    private int consumers;

    @Setup
    public void open() {
        server = new Server();
        server.createStream(StreamSpec.of(STREAM), EVENTS, 0);
    }

    @TearDown
    public void close() {
        server.close();
    }

    /** A call of the handler for each event. */
    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public long single() throws InterruptedException {
        Counted counted = new Counted();
        EventHandler handler = event -> counted.add(event, 1);
        return counted.await(eventSql().subscribe(newConsumer(), handler));
    }

    /** A call of the handler for each page. */
    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public long batch() throws InterruptedException {
        Counted counted = new Counted();
        EventBatchHandler handler = events -> counted.add(events.getFirst(), events.size());
        return counted.await(eventSql().subscribeBatch(newConsumer(), handler));
    }

    /** A call of the handler for each event, of several keys at the same time. */
    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public long byKey() throws InterruptedException {
        Counted counted = new Counted();
        EventHandler handler = event -> counted.add(event, 1);
        return counted.await(eventSql().subscribe(newConsumer().withKeyConcurrency(KEYS_AT_A_TIME), handler));
    }

    private EventSql eventSql() {
        return server.eventSql();
    }

    private ConsumerSpec newConsumer() {
        return ConsumerSpec.of(STREAM, "consumer_" + consumers++);
    }

    /** Counts events until all have been handled. Thread-safe. */
    private static final class Counted {
        private final CountDownLatch all = new CountDownLatch(1);
        private final AtomicInteger left = new AtomicInteger(EVENTS);
        private volatile int valueBytes;

        void add(StoredEvent event, int events) {
            valueBytes = event.value().length;
            if (left.addAndGet(-events) == 0) {
                all.countDown();
            }
        }

        /** Closes the subscription after all events, which commits the offsets. */
        long await(Subscription subscription) throws InterruptedException {
            try (subscription) {
                if (!all.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                    throw new IllegalStateException(left.get() + " events were not handled within the time limit");
                }
            }
            return valueBytes;
        }
    }
}
