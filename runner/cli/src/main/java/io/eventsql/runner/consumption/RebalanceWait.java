package io.eventsql.runner.consumption;

import static java.util.stream.Collectors.counting;
import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.joining;

import io.eventsql.EventSqlException;
import io.eventsql.PartitionState;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Waits until several members of a consumer share its partitions: on each shard every partition is held, by as many
 * members as there are or as there are partitions, and none holds more than one more than another. Then nothing moves any
 * more, and a measurement can begin.
 */
public final class RebalanceWait {
    private static final long POLL_NANOS = Duration.ofMillis(100).toNanos();
    private static final long REPORT_NANOS = Duration.ofSeconds(1).toNanos();

    private final Supplier<List<PartitionState>> state;
    private final int members;
    private final LoadClock clock;
    private final Duration timeout;
    private final StopSignal stop;
    private final Consumer<String> out;

    /**
     * @param state the consumer's partitions; may throw {@link EventSqlException}, then it is asked again
     * @param members how many members there are to be; a single one is not waited for
     * @param timeout how long to wait at most
     * @param stop ends the wait early
     * @param out takes lines of text about the progress, about one a second
     */
    public RebalanceWait(
            Supplier<List<PartitionState>> state,
            int members,
            LoadClock clock,
            Duration timeout,
            StopSignal stop,
            Consumer<String> out) {
        this.state = state;
        this.members = members;
        this.clock = clock;
        this.timeout = timeout;
        this.stop = stop;
        this.out = out;
    }

    /**
     * Waits.
     *
     * @return {@code false} after a stop signal
     * @throws IOException after the time-out; says who holds what
     */
    public boolean await() throws IOException {
        long started = clock.nanos();
        long reported = started;
        while (members > 1 && !stop.isRaised()) {
            Optional<String> missing = missing();
            if (missing.isEmpty()) {
                break;
            }
            long now = clock.nanos();
            String what = members + " members do not share the consumer's partitions";
            if (now - started > timeout.toNanos()) {
                throw new IOException(what + " after " + timeout.toSeconds() + " s: " + missing.get());
            }
            if (now - reported >= REPORT_NANOS) {
                out.accept(what + " yet: " + missing.get() + "; waiting for 1s...");
                reported = now;
            }
            clock.parkNanos(POLL_NANOS);
        }
        return !stop.isRaised();
    }

    /** The first shard that is not shared, as text; empty: all are. */
    private Optional<String> missing() {
        List<PartitionState> now;
        try {
            now = state.get();
        } catch (EventSqlException e) {
            return Optional.of("its partitions cannot be read (" + e.getMessage() + ")");
        }
        if (now.isEmpty()) {
            return Optional.of("it was never started");
        }
        Map<Integer, List<PartitionState>> shards =
                new TreeMap<>(now.stream().collect(groupingBy(PartitionState::shard)));
        return shards.values().stream()
                .filter(partitions -> !isShared(partitions))
                .findFirst()
                .map(RebalanceWait::holders);
    }

    private boolean isShared(List<PartitionState> partitions) {
        Map<String, Long> held = held(partitions);
        LongSummaryStatistics shares =
                held.values().stream().mapToLong(Long::longValue).summaryStatistics();
        return shares.getSum() == partitions.size()
                && held.size() == Math.min(members, partitions.size())
                && shares.getMax() - shares.getMin() <= 1;
    }

    private static String holders(List<PartitionState> partitions) {
        Map<String, Long> held = held(partitions);
        String holders = held.entrySet().stream()
                .map(member -> member.getKey() + " holds " + member.getValue())
                .collect(joining(", "));
        long free = partitions.size()
                - held.values().stream().mapToLong(Long::longValue).sum();
        return "on shard " + partitions.getFirst().shard() + " " + (holders.isEmpty() ? "" : holders + ", ") + free
                + " of " + partitions.size() + " held by nobody";
    }

    private static Map<String, Long> held(List<PartitionState> partitions) {
        return partitions.stream()
                .filter(partition -> partition.member() != null)
                .collect(groupingBy(partition -> String.valueOf(partition.member()), TreeMap::new, counting()));
    }
}
