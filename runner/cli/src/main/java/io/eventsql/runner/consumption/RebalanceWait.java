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
    private static final Duration POLL = Duration.ofMillis(100);

    private final Supplier<List<PartitionState>> state;
    private final int members;
    private final ReportedWait wait;

    /**
     * @param state the consumer's partitions; retried if it throws {@link EventSqlException}
     * @param members the expected number of members; a single one is not waited for
     * @param out receives about one progress line per second
     */
    public RebalanceWait(Supplier<List<PartitionState>> state, int members, LoadClock clock, Consumer<String> out) {
        this.state = state;
        this.members = members;
        String what = sharing() + " yet: ";
        this.wait = new ReportedWait(clock, POLL, missing -> out.accept(what + missing));
    }

    /**
     * Waits for the members.
     *
     * @param timeout the maximum time to wait
     * @param stop aborts the wait
     * @return {@code false} after a stop signal
     * @throws IOException after the timeout; the message lists the assignments
     */
    public boolean await(Duration timeout, StopSignal stop) throws IOException {
        Optional<String> missing = members == 1 ? Optional.empty() : wait.await(timeout, stop, this::describeImbalance);
        if (missing.isPresent()) {
            throw new IOException(sharing() + " after " + timeout.toSeconds() + " s: " + missing.get());
        }
        return !stop.isRaised();
    }

    private String sharing() {
        return members + " members do not share the consumer's partitions";
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
