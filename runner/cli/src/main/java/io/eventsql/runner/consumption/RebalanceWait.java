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
 * Waits until the members of a consumer share its partitions evenly: on each shard, every partition is assigned, to as
 * many members as there are members or partitions, and the assignments differ by at most one partition. From then on no
 * partition moves, and a measurement can start.
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
     * @param state the consumer's partitions; retried if it throws {@link EventSqlException}
     * @param members the expected number of members; a single one is not waited for
     * @param timeout the maximum time to wait
     * @param stop aborts the wait
     * @param out receives about one progress line per second
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
     * Waits for the members.
     *
     * @return {@code false} after a stop signal
     * @throws IOException after the timeout; the message lists the assignments
     */
    public boolean await() throws IOException {
        long started = clock.nanos();
        long reported = started;
        while (members > 1 && !stop.isRaised()) {
            Optional<String> missing = describeImbalance();
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

    /** Describes the first shard that is not shared evenly; empty if there is none. */
    private Optional<String> describeImbalance() {
        List<PartitionState> now;
        try {
            now = state.get();
        } catch (EventSqlException e) {
            return Optional.of("cannot read its partitions (" + e.getMessage() + ")");
        }
        if (now.isEmpty()) {
            return Optional.of("no member has started");
        }
        Map<Integer, List<PartitionState>> shards =
                new TreeMap<>(now.stream().collect(groupingBy(PartitionState::shard)));
        return shards.values().stream()
                .filter(partitions -> !isShared(partitions))
                .findFirst()
                .map(RebalanceWait::describeAssignments);
    }

    private boolean isShared(List<PartitionState> partitions) {
        Map<String, Long> held = assignedPartitions(partitions);
        LongSummaryStatistics shares =
                held.values().stream().mapToLong(Long::longValue).summaryStatistics();
        return shares.getSum() == partitions.size()
                && held.size() == Math.min(members, partitions.size())
                && shares.getMax() - shares.getMin() <= 1;
    }

    private static String describeAssignments(List<PartitionState> partitions) {
        Map<String, Long> held = assignedPartitions(partitions);
        String holders = held.entrySet().stream()
                .map(member -> member.getKey() + " holds " + member.getValue())
                .collect(joining(", "));
        long free = partitions.size()
                - held.values().stream().mapToLong(Long::longValue).sum();
        return "on shard " + partitions.getFirst().shard() + " " + (holders.isEmpty() ? "" : holders + ", ") + free
                + " of " + partitions.size() + " unassigned";
    }

    private static Map<String, Long> assignedPartitions(List<PartitionState> partitions) {
        return partitions.stream()
                .filter(partition -> partition.member() != null)
                .collect(groupingBy(partition -> String.valueOf(partition.member()), TreeMap::new, counting()));
    }
}
