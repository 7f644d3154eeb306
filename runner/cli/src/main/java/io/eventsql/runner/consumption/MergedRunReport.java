package io.eventsql.runner.consumption;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.consumption.RunReport.PhaseDetail;
import io.eventsql.runner.consumption.RunReport.PhaseReport;
import io.eventsql.runner.consumption.RunReport.RunnerReport;
import io.eventsql.runner.measure.Histograms;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;

/**
 * The merged reports of all members of a consumer, as if one member had received all events. Merges event numbers
 * instead of adding counts, so that a lost event is detected even if another one was received by two members.
 *
 * @param run the merged counts; order violations are detected within each member
 * @param members the number of members
 * @param partitionsOfSeveralMembers the partitions whose measured events were handled by more than one member; order is
 *     not checked across members
 * @param latencies the end-to-end latencies of the measured events, in microseconds, by the epoch second in which they were
 *     handled
 */
public record MergedRunReport(
        RunReport run, int members, int partitionsOfSeveralMembers, Map<Long, Histogram> latencies) {

    /** Returns the report of members that have received nothing, or whose reports are unknown. */
    static MergedRunReport empty(String run, int members) {
        return new MergedRunReport(new RunReport(run, "", List.of()), members, 0, Map.of());
    }

    /**
     * Returns the report of the only member.
     *
     * @param run the member's report with detail
     * @throws IllegalArgumentException if the detail is invalid
     */
    public static MergedRunReport ofSingleMember(RunReport run) {
        return new MergedRunReport(run, 1, 0, latencies(List.of(run)));
    }

    /**
     * Merges the reports of several members.
     *
     * @param run the run's id
     * @param members the number of members
     * @param seen the members' reports with detail; those of members that received nothing may be omitted
     * @throws IllegalArgumentException if a detail is missing or invalid
     */
    public static MergedRunReport merge(String run, int members, List<RunReport> seen) {
        List<RunnerReport> runners = seen.stream()
                .flatMap(app -> app.runners().stream())
                .map(RunnerReport::runner)
                .distinct()
                .sorted()
                .map(runner -> new RunnerReport(
                        runner,
                        merge(seen.stream().map(app -> app.of(runner).measured())),
                        merge(seen.stream().map(app -> app.of(runner).warmup()))))
                .toList();
        String consumer = seen.isEmpty() ? "" : seen.getFirst().consumer();
        return new MergedRunReport(
                new RunReport(run, consumer, runners), members, partitionsOfSeveralMembers(seen), latencies(seen));
    }

    /** @throws IllegalArgumentException if a histogram is invalid */
    private static Map<Long, Histogram> latencies(List<RunReport> seen) {
        Map<Long, Histogram> all = new TreeMap<>();
        seen.stream()
                .flatMap(app -> app.runners().stream())
                .map(runner -> runner.measured().endToEndMicrosBySecond())
                .forEach(seconds ->
                        seconds.forEach((second, encoded) -> all.computeIfAbsent(second, missing -> Histograms.create())
                                .add(Histograms.decode(encoded))));
        return all;
    }

    private static PhaseReport merge(Stream<PhaseReport> ofMembers) {
        List<PhaseReport> seen =
                ofMembers.filter(events -> events.received() > 0).toList();
        if (seen.isEmpty()) {
            return PhaseReport.NONE;
        }
        NumberSet numbers = new NumberSet();
        seen.forEach(events -> numbers.addAll(numbers(events)));
        long received = seen.stream().mapToLong(PhaseReport::received).sum();
        return new PhaseReport(
                received,
                numbers.size(),
                received - numbers.size(),
                seen.stream().mapToLong(PhaseReport::highestNumber).max().orElseThrow(),
                seen.stream().mapToLong(PhaseReport::orderViolations).sum(),
                seen.stream().mapToLong(PhaseReport::handledBeforeIntended).sum(),
                seen.stream().mapToLong(PhaseReport::firstHandledAtMicros).min().orElseThrow(),
                seen.stream().mapToLong(PhaseReport::lastHandledAtMicros).max().orElseThrow(),
                Histograms.encode(Histograms.merge(seen.stream()
                        .map(events -> Histograms.decode(events.endToEndMicrosHistogram()))
                        .toList())),
                null);
    }

    /** Decodes a member's numbers and checks them against its count. */
    private static NumberSet numbers(PhaseReport events) {
        PhaseDetail detail = events.detail();
        if (detail == null) {
            throw new IllegalArgumentException("an app does not report the received numbers");
        }
        NumberSet numbers = NumberSet.decode(detail.numbers());
        if (numbers.size() != events.distinct()) {
            throw new IllegalArgumentException(
                    "an app reports " + events.distinct() + " distinct events, but " + numbers.size() + " numbers");
        }
        return numbers;
    }

    private static int partitionsOfSeveralMembers(List<RunReport> seen) {
        Set<String> ofOne = new HashSet<>();
        Set<String> ofSeveral = new HashSet<>();
        for (RunReport app : seen) {
            Set<String> partitions = new HashSet<>();
            app.runners().stream()
                    .flatMap(runner -> Stream.ofNullable(runner.measured().detail()))
                    .forEach(detail -> partitions.addAll(detail.partitions()));
            partitions.stream().filter(partition -> !ofOne.add(partition)).forEach(ofSeveral::add);
        }
        return ofSeveral.size();
    }
}
