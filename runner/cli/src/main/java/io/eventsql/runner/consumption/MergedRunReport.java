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
import java.util.stream.Stream;

/**
 * What the members of a consumer have seen of a run, as if one had seen it all. Numbers are united, not counts: an event
 * that nobody has seen is lost even if two members have seen another one.
 *
 * @param run the united counts; order violations are those that a member has seen by itself
 * @param members how many members there are
 * @param partitionsOfSeveralMembers partitions of whose measured events more than one member has seen some; from one to the
 *     next, order is not checked
 * @param seconds when the measured events were handled
 */
public record MergedRunReport(RunReport run, int members, int partitionsOfSeveralMembers, LatenciesBySecond latencies) {

    /** Nobody has seen anything, or what they have seen is not known. */
    static MergedRunReport empty(String run, int members) {
        return new MergedRunReport(new RunReport(run, "", List.of()), members, 0, new LatenciesBySecond(Map.of()));
    }

    /**
     * What the only member has seen.
     *
     * @param run with detail
     * @throws IllegalArgumentException if the detail is not understood
     */
    public static MergedRunReport ofSingleMember(RunReport run) {
        return new MergedRunReport(run, 1, 0, LatenciesBySecond.of(List.of(run)));
    }

    /**
     * Unites what several members have seen.
     *
     * @param run the run's id
     * @param members how many members there are
     * @param seen what they have seen, with detail; those that have seen nothing may be left out
     * @throws IllegalArgumentException if a detail is missing or not understood
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
                new RunReport(run, consumer, runners),
                members,
                partitionsOfSeveralMembers(seen),
                LatenciesBySecond.of(seen));
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

    /** A member's numbers, as many as it says it has seen. */
    private static NumberSet numbers(PhaseReport events) {
        PhaseDetail detail = events.detail();
        if (detail == null) {
            throw new IllegalArgumentException("an app does not tell which numbers it has seen");
        }
        NumberSet numbers = NumberSet.decode(detail.numbers());
        if (numbers.size() != events.distinct()) {
            throw new IllegalArgumentException(
                    "an app has seen " + events.distinct() + " numbers, but tells " + numbers.size());
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
