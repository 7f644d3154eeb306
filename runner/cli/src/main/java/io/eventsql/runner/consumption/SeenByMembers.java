package io.eventsql.runner.consumption;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.consumption.AppRun.AppRunner;
import io.eventsql.runner.consumption.AppRun.Detail;
import io.eventsql.runner.consumption.AppRun.SeenEvents;
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
 * @param partitionsOfSeveral partitions of whose measured events more than one member has seen some; from one to the
 *     next, order is not checked
 * @param seconds when the measured events were handled
 */
public record SeenByMembers(AppRun run, int members, int partitionsOfSeveral, ConsumedSeconds seconds) {

    /** Nobody has seen anything, or what they have seen is not known. */
    static SeenByMembers nothing(String run, int members) {
        return new SeenByMembers(new AppRun(run, "", List.of()), members, 0, new ConsumedSeconds(Map.of()));
    }

    /**
     * What the only member has seen.
     *
     * @param run with detail
     * @throws IllegalArgumentException if the detail is not understood
     */
    public static SeenByMembers one(AppRun run) {
        return new SeenByMembers(run, 1, 0, ConsumedSeconds.of(List.of(run)));
    }

    /**
     * Unites what several members have seen.
     *
     * @param run the run's id
     * @param members how many members there are
     * @param seen what they have seen, with detail; those that have seen nothing may be left out
     * @throws IllegalArgumentException if a detail is missing or not understood
     */
    public static SeenByMembers unite(String run, int members, List<AppRun> seen) {
        List<AppRunner> runners = seen.stream()
                .flatMap(app -> app.runners().stream())
                .map(AppRunner::runner)
                .distinct()
                .sorted()
                .map(runner -> new AppRunner(
                        runner,
                        unite(seen.stream().map(app -> app.of(runner).measured())),
                        unite(seen.stream().map(app -> app.of(runner).warmup()))))
                .toList();
        String consumer = seen.isEmpty() ? "" : seen.getFirst().consumer();
        return new SeenByMembers(
                new AppRun(run, consumer, runners), members, partitionsOfSeveral(seen), ConsumedSeconds.of(seen));
    }

    private static SeenEvents unite(Stream<SeenEvents> ofMembers) {
        List<SeenEvents> seen =
                ofMembers.filter(events -> events.received() > 0).toList();
        if (seen.isEmpty()) {
            return SeenEvents.NONE;
        }
        NumberSet numbers = new NumberSet();
        seen.forEach(events -> numbers.addAll(numbers(events)));
        long received = seen.stream().mapToLong(SeenEvents::received).sum();
        return new SeenEvents(
                received,
                numbers.size(),
                received - numbers.size(),
                seen.stream().mapToLong(SeenEvents::highestNumber).max().orElseThrow(),
                seen.stream().mapToLong(SeenEvents::orderViolations).sum(),
                seen.stream().mapToLong(SeenEvents::handledBeforeIntended).sum(),
                seen.stream().mapToLong(SeenEvents::firstHandledAtMicros).min().orElseThrow(),
                seen.stream().mapToLong(SeenEvents::lastHandledAtMicros).max().orElseThrow(),
                Histograms.encode(Histograms.merge(seen.stream()
                        .map(events -> Histograms.decode(events.endToEndMicrosHistogram()))
                        .toList())),
                null);
    }

    /** A member's numbers, as many as it says it has seen. */
    private static NumberSet numbers(SeenEvents events) {
        Detail detail = events.detail();
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

    private static int partitionsOfSeveral(List<AppRun> seen) {
        Set<String> ofOne = new HashSet<>();
        Set<String> ofSeveral = new HashSet<>();
        for (AppRun app : seen) {
            Set<String> partitions = new HashSet<>();
            app.runners().stream()
                    .flatMap(runner -> Stream.ofNullable(runner.measured().detail()))
                    .forEach(detail -> partitions.addAll(detail.partitions()));
            partitions.stream().filter(partition -> !ofOne.add(partition)).forEach(ofSeveral::add);
        }
        return ofSeveral.size();
    }
}
