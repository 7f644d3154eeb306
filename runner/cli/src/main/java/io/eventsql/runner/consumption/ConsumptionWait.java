package io.eventsql.runner.consumption;

import io.eventsql.ConsumerPosition;
import io.eventsql.EventSqlException;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Waits until a consumer has handled all events that were stored when the wait started. */
public final class ConsumptionWait {
    private static final long POLL_NANOS = Duration.ofMillis(50).toNanos();
    private static final long REPORT_NANOS = Duration.ofSeconds(1).toNanos();

    private record Partition(int shard, int number) {
        static Partition of(ConsumerPosition position) {
            return new Partition(position.shard(), position.partition());
        }
    }

    private final Supplier<List<ConsumerPosition>> positions;
    private final LoadClock clock;
    private final Duration timeout;
    private final StopSignal stop;
    private final Consumer<String> out;

    /**
     * @param positions the consumer's position in each partition; retried if it throws {@link EventSqlException}
     * @param timeout the maximum time to wait
     * @param stop aborts the wait
     * @param out receives about one progress line per second
     */
    public ConsumptionWait(
            Supplier<List<ConsumerPosition>> positions,
            LoadClock clock,
            Duration timeout,
            StopSignal stop,
            Consumer<String> out) {
        this.positions = positions;
        this.clock = clock;
        this.timeout = timeout;
        this.stop = stop;
        this.out = out;
    }

    /** Returns whether all events were handled in time; {@code false} after a timeout or a stop signal. */
    public boolean await() {
        long started = clock.nanos();
        long reported = started;
        Map<Partition, Long> heads = new HashMap<>();
        while (!stop.isRaised()) {
            Optional<String> open = describeBacklog(heads);
            if (open.isEmpty()) {
                return true;
            }
            long now = clock.nanos();
            if (now - started > timeout.toNanos()) {
                out.accept("Not everything was consumed within " + timeout.toSeconds() + " s: " + open.get());
                return false;
            }
            if (now - reported >= REPORT_NANOS) {
                out.accept(open.get() + "; waiting for 1s...");
                reported = now;
            }
            clock.parkNanos(POLL_NANOS);
        }
        return false;
    }

    /**
     * Describes the remaining work; empty if there is none. The first call records the target head of each partition.
     */
    private Optional<String> describeBacklog(Map<Partition, Long> heads) {
        List<ConsumerPosition> now;
        try {
            now = positions.get();
        } catch (EventSqlException e) {
            return Optional.of("Cannot read the consumer's positions (" + e.getMessage() + ")");
        }
        if (now.isEmpty()) {
            return Optional.of("The consumer has no positions yet");
        }
        boolean severalShards = now.stream()
                .anyMatch(position -> position.shard() != now.getFirst().shard());
        for (ConsumerPosition position : now) {
            heads.putIfAbsent(Partition.of(position), position.head());
        }
        return now.stream()
                .filter(position -> position.nextOffset() < heads.getOrDefault(Partition.of(position), 0L))
                .findFirst()
                .map(position -> "Consumer of " + position.partition() + " partition is at the event "
                        + position.nextOffset() + ", but latest event is " + position.head()
                        + (severalShards ? " (shard " + position.shard() + ")" : ""));
    }
}
