package io.eventsql.runner.consumption;

import io.eventsql.ConsumerPosition;
import io.eventsql.EventSqlException;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.phases.Consumption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Consumption by apps that run elsewhere, the members of one consumer of a stream. */
public final class AppConsumption implements Consumption {
    private static final Duration POLL = Duration.ofMillis(50);

    private record Partition(int shard, int number) {
        static Partition of(ConsumerPosition position) {
            return new Partition(position.shard(), position.partition());
        }
    }

    private final Supplier<List<ConsumerPosition>> positions;
    private final ReportedWait wait;
    private final Consumer<String> out;

    /**
     * @param positions the consumer's position in each partition; retried if it throws {@link EventSqlException}
     * @param out receives about one progress line per second of a wait
     */
    public AppConsumption(Supplier<List<ConsumerPosition>> positions, LoadClock clock, Consumer<String> out) {
        this.positions = positions;
        this.wait = new ReportedWait(clock, POLL, out);
        this.out = out;
    }

    /** Waits until the consumer has handled all events that were stored when the wait started. */
    @Override
    public boolean await(Duration timeout, StopSignal stop) {
        Map<Partition, Long> heads = new HashMap<>();
        Optional<String> open = wait.await(timeout, stop, () -> describeBacklog(heads));
        open.ifPresent(what -> out.accept("Not everything was consumed within " + timeout.toSeconds() + " s: " + what));
        return open.isEmpty() && !stop.isRaised();
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
