package io.eventsql.runner.consumption;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The app's report of a run ({@code GET /benchmark-runs/{run}}).
 *
 * @param run the run's id
 * @param consumer the app's consumer
 * @param runners the reports of the runners whose events it has received
 */
public record RunReport(String run, String consumer, List<RunnerReport> runners) {

    /**
     * The report of one runner.
     *
     * @param runner the runner's number
     * @param measured the measured events
     * @param warmup the warm-up events
     */
    public record RunnerReport(int runner, PhaseReport measured, PhaseReport warmup) {}

    /**
     * The counts of one runner and phase.
     *
     * @param received all received events
     * @param distinct the distinct event numbers
     * @param duplicates the events whose number was received before
     * @param highestNumber the highest number; -1 if none was received
     * @param orderViolations the events received after a higher number of the same key
     * @param handledBeforeIntended the events apparently handled before their intended send time, because the clocks
     *     differ
     * @param firstHandledAtMicros the time when the first was handled, in epoch microseconds; 0 if none was received
     * @param lastHandledAtMicros the time when the last was handled, in epoch microseconds; 0 if none was received
     * @param endToEndMicrosHistogram the encoded latencies from the intended send to the handler; empty if none was
     *     received
     * @param detail the detail needed to merge reports of several members; {@code null} if not requested
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

        /** Returns {@link PhaseDetail#endToEndMicrosBySecond}; empty without detail. */
        Map<Long, String> endToEndMicrosBySecond() {
            return detail == null ? Map.of() : detail.endToEndMicrosBySecond;
        }
    }

    /**
     * The detail needed to merge the counts of several members and to follow them second by second.
     *
     * @param numbers the received numbers, an encoded {@link io.eventsql.benchmark.event.NumberSet}
     * @param partitions the partitions of the events, as {@code shard/partition}
     * @param endToEndMicrosBySecond the encoded latencies of the events handled in each epoch second
     */
    public record PhaseDetail(String numbers, List<String> partitions, Map<Long, String> endToEndMicrosBySecond) {}

    /** Returns the report of a runner; an empty report if the app has received none of its events. */
    public RunnerReport of(int runner) {
        return runners.stream()
                .filter(seen -> seen.runner() == runner)
                .findFirst()
                .orElse(new RunnerReport(runner, PhaseReport.NONE, PhaseReport.NONE));
    }
}
