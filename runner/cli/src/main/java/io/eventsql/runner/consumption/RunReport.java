package io.eventsql.runner.consumption;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the app has seen of a run ({@code GET /benchmark-runs/{run}}).
 *
 * @param run the run's id
 * @param consumer the app's consumer
 * @param runners each runner of which it has seen an event
 */
public record RunReport(String run, String consumer, List<RunnerReport> runners) {

    /**
     * What it has seen of one runner.
     *
     * @param runner the runner's number
     * @param measured the events that are measured
     * @param warmup the events before them
     */
    public record RunnerReport(int runner, PhaseReport measured, PhaseReport warmup) {}

    /**
     * The events of one runner and phase.
     *
     * @param received all of them
     * @param distinct different numbers among them
     * @param duplicates those whose number had been there before
     * @param highestNumber the highest number; -1 where none was received
     * @param orderViolations those that came after a higher number of the same key
     * @param handledBeforeIntended those that seem to have been handled before they were meant to be sent: the clocks
     *     differ
     * @param firstHandledAtMicros when the first was handled, epoch microseconds; 0 where none was
     * @param lastHandledAtMicros when the last was handled, epoch microseconds; 0 where none was
     * @param endToEndMicrosHistogram latency from the intended time to the handler, an encoded histogram; empty where
     *     none was received
     * @param detail what unites it with what other members have seen; {@code null} where nobody asked for it
     */
    public record PhaseReport(
            long received,
            long distinct,
            long duplicates,
            long highestNumber,
            long orderViolations,
            long handledBeforeIntended,
            long firstHandledAtMicros,
            long lastHandledAtMicros,
            String endToEndMicrosHistogram,
            @Nullable PhaseDetail detail) {

        public static final PhaseReport NONE = new PhaseReport(0, 0, 0, -1, 0, 0, 0, 0, "", null);

        /** See {@link PhaseDetail#endToEndMicrosBySecond}; empty without detail. */
        Map<Long, String> endToEndMicrosBySecond() {
            return detail == null ? Map.of() : detail.endToEndMicrosBySecond;
        }
    }

    /**
     * What unites the counts of several members, and follows them second by second.
     *
     * @param numbers the numbers that were received, an encoded {@link io.eventsql.benchmark.event.NumberSet}
     * @param partitions the partitions they came from, as {@code shard/partition}
     * @param endToEndMicrosBySecond the encoded latencies of the events that were handled in each second since 1970
     */
    public record PhaseDetail(String numbers, List<String> partitions, Map<Long, String> endToEndMicrosBySecond) {}

    /** What was seen of a runner; nothing where the app does not know it. */
    public RunnerReport of(int runner) {
        return runners.stream()
                .filter(seen -> seen.runner() == runner)
                .findFirst()
                .orElse(new RunnerReport(runner, PhaseReport.NONE, PhaseReport.NONE));
    }
}
