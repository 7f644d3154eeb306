package io.eventsql.runner.result;

import static io.eventsql.runner.measure.Statistics.rounded;
import static java.util.stream.Collectors.joining;

import io.eventsql.runner.consumption.MergedRunReport;
import io.eventsql.runner.consumption.RunReport;
import io.eventsql.runner.consumption.RunReport.PhaseReport;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.spec.RunSettings;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;

/** Combines the results of the runners with the reports of the consumer apps. */
public final class Summarizer {

    /** The result of one runner, matched with the apps' report about it. */
    private record MatchedRunner(RunnerResult sent, PhaseReport seen, PhaseReport warmupSeen) {

        long lost() {
            long expected = sent.ending().endedEarly() ? sent.measured().eventsPublished() : sent.eventsAsked();
            return Math.max(0, expected - seen.distinct());
        }

        long warmupLost() {
            return Math.max(0, sent.warmupEvents() - warmupSeen.distinct());
        }

        Histogram publishMicros() {
            return sent.measured().publishLatencyMicros();
        }

        Histogram delayMicros() {
            return sent.measured().scheduleDelayMicros();
        }

        Histogram endToEndMicros() {
            return seen.endToEndMicrosHistogram().isEmpty()
                    ? Histograms.create()
                    : Histograms.decode(seen.endToEndMicrosHistogram());
        }
    }

    private static final int FORMAT = 2;
    private static final long MICROS_PER_SECOND = 1_000_000;

    private final List<MatchedRunner> pairs;
    private final MergedRunReport seen;
    private final List<String> problems;

    /**
     * @param runners the results of the runners, at least one
     * @param seen the merged reports of the apps
     * @param knownProblems problems detected so far
     */
    public Summarizer(List<RunnerResult> runners, MergedRunReport seen, List<String> knownProblems) {
        this.seen = seen;
        this.pairs = runners.stream()
                .sorted(Comparator.comparingInt(RunnerResult::runner))
                .map(sent -> {
                    RunReport.RunnerReport ofRunner = seen.run().of(sent.runner());
                    return new MatchedRunner(sent, ofRunner.measured(), ofRunner.warmup());
                })
                .toList();
        this.problems = List.copyOf(knownProblems);
    }

    /** Returns the merged time series. */
    public MergedSeries series() {
        return new MergedSeries(
                pairs.stream()
                        .map(pair -> pair.sent.series())
                        .flatMap(Stream::ofNullable)
                        .toList(),
                seen.latencies(),
                Math.floorDiv(firstIntendedAtMicros(), MICROS_PER_SECOND));
    }

    /** Returns the summary of the whole run. */
    public Summary summarize(MergedSeries series, Summary.Provenance provenance) {
        RunSettings settings = first().settings();
        Summary.Counts counts = counts();
        List<String> found = problems(counts);
        return new Summary(
                new Summary.FileFormat(FORMAT, "publish", provenance.workload()),
                new Summary.Verdict(
                        first().run(),
                        found.isEmpty(),
                        found,
                        pairs.stream().anyMatch(pair -> pair.sent.ending().timedOut()),
                        pairs.stream().anyMatch(pair -> pair.sent.ending().interrupted())),
                new Summary.Configuration(
                        first().shards().size(),
                        settings.stream().partitions(),
                        settings.identity().runners(),
                        seen.members(),
                        sum(pair -> pair.sent.settings().load().eventsPerSecond()),
                        settings),
                counts,
                rates(counts),
                latencies(pairs),
                machine(provenance),
                Conditions.of(pairs.stream().map(pair -> pair.sent).toList()),
                pairs.stream().map(Summarizer::summarize).toList(),
                series.seconds(),
                series.resources(),
                new Summary.RawHistograms(
                        Histograms.encode(merged(pairs, MatchedRunner::publishMicros)),
                        Histograms.encode(merged(pairs, MatchedRunner::endToEndMicros)),
                        Histograms.encode(merged(pairs, MatchedRunner::delayMicros))));
    }

    private RunnerResult first() {
        return pairs.getFirst().sent;
    }

    private Summary.Counts counts() {
        return new Summary.Counts(
                sum(pair -> pair.sent.eventsAsked()),
                sum(pair -> pair.sent.measured().eventsPublished()),
                sum(pair -> pair.seen.distinct()),
                sum(MatchedRunner::lost),
                sum(pair -> pair.seen.duplicates()),
                sum(pair -> pair.seen.orderViolations()),
                seen.partitionsOfSeveralMembers(),
                sum(pair -> pair.seen.handledBeforeIntended()),
                sum(pair -> pair.sent.failedEvents()),
                errorsByClass(),
                sum(pair -> pair.sent.warmupEvents()),
                sum(MatchedRunner::warmupLost),
                sum(pair -> pair.warmupSeen.duplicates()),
                sum(pair -> pair.warmupSeen.orderViolations()));
    }

    private List<ErrorCount> errorsByClass() {
        Map<String, ErrorCount> byClass = new TreeMap<>();
        for (MatchedRunner pair : pairs) {
            Stream.of(pair.sent.measured(), pair.sent.warmup())
                    .flatMap(phase -> phase.publishErrors().byClass().stream())
                    .forEach(error -> byClass.merge(error.errorClass(), error, ErrorCount::plus));
        }
        return List.copyOf(byClass.values());
    }

    private Summary.Rates rates(Summary.Counts counts) {
        double publishRate = pairs.stream()
                .mapToDouble(pair -> pair.sent.measured().publishRate())
                .sum();
        long firstIntended = firstIntendedAtMicros();
        long lastAck = pairs.stream()
                .map(pair -> pair.sent.measured().lastAckAtMicros())
                .flatMap(Stream::ofNullable)
                .mapToLong(Long::longValue)
                .max()
                .orElse(0);
        long lastHandled = pairs.stream()
                .mapToLong(pair -> pair.seen.lastHandledAtMicros())
                .max()
                .orElse(0);
        boolean anyConsumed = counts.eventsConsumed() > 0;
        long tookMicros = lastHandled - firstIntended;
        return new Summary.Rates(
                rounded(publishRate, 10),
                anyConsumed && tookMicros > 0 ? rounded(counts.eventsConsumed() * 1e6 / tookMicros, 10) : 0,
                anyConsumed && lastAck > 0 ? rounded((lastHandled - lastAck) / 1_000.0, 1_000) : 0);
    }

    private long firstIntendedAtMicros() {
        return pairs.stream()
                .map(pair -> pair.sent.measured().firstIntendedAtMicros())
                .flatMap(Stream::ofNullable)
                .mapToLong(Long::longValue)
                .min()
                .orElse(0);
    }

    private static Summary.Latencies latencies(List<MatchedRunner> pairs) {
        return new Summary.Latencies(
                Percentiles.ofMicros(merged(pairs, MatchedRunner::publishMicros)),
                Percentiles.ofMicros(merged(pairs, pair -> pair.sent.measured().serviceLatencyMicros())),
                Percentiles.ofMicros(merged(pairs, MatchedRunner::endToEndMicros)),
                Percentiles.ofMicros(merged(pairs, MatchedRunner::delayMicros)));
    }

    private Summary.Machine machine(Summary.Provenance provenance) {
        return new Summary.Machine(
                ofShards(ShardServerInfo::fsync),
                ofShards(ShardServerInfo::synchronousCommit),
                ofShards(ShardServerInfo::serverVersion),
                pairs.stream().map(pair -> pair.sent.javaVersion()).distinct().collect(joining(", ")),
                Summary.Machine.thisSystem(),
                provenance);
    }

    private String ofShards(Function<ShardServerInfo, String> field) {
        return pairs.stream()
                .flatMap(pair -> pair.sent.shards().stream())
                .map(field)
                .distinct()
                .collect(joining(", "));
    }

    private static Summary.RunnerSummary summarize(MatchedRunner pair) {
        return new Summary.RunnerSummary(
                pair.sent.runner(),
                pair.sent.measured().eventsPublished(),
                pair.seen.distinct(),
                pair.lost(),
                Math.max(0, pair.sent.measured().eventsPublished() - pair.seen.distinct()),
                pair.seen.duplicates(),
                pair.seen.orderViolations(),
                pair.sent.failedEvents(),
                rounded(pair.sent.measured().publishRate(), 10),
                pair.sent.appClock(),
                latencies(List.of(pair)));
    }

    private List<String> problems(Summary.Counts counts) {
        List<String> found = new ArrayList<>(problems);
        int runners = first().settings().identity().runners();
        if (pairs.size() != runners) {
            found.add(pairs.size() + " of " + runners + " runners wrote a result");
        }
        addIfAny(found, counts.eventsLost(), "events were lost");
        addIfAny(found, counts.eventsDuplicated(), "events were delivered more than once");
        addIfAny(found, counts.orderViolations(), "events were out of order for their key");
        addIfAny(found, counts.publishErrors(), "events failed to publish");
        addIfAny(found, counts.warmupEventsLost(), "warm-up events were lost");
        addIfAny(found, counts.warmupEventsDuplicated(), "warm-up events were delivered more than once");
        addIfAny(found, counts.warmupOrderViolations(), "warm-up events were out of order for their key");
        for (MatchedRunner pair : pairs) {
            String runner = "Runner " + pair.sent.runner();
            RunnerResult.Ending ending = pair.sent.ending();
            if (ending.timedOut()) {
                found.add(runner + ": not everything was consumed within "
                        + pair.sent.settings().stream().consumeTimeoutSeconds() + " s");
            }
            if (ending.interrupted()) {
                found.add(runner + " was interrupted");
            }
            if (ending.stoppedForNoProgress()) {
                found.add(runner + " aborted: no acknowledgement for 60 s");
            }
            if (pair.seen.highestNumber() >= pair.sent.eventsAsked()) {
                found.add(runner + ": the app received event number " + pair.seen.highestNumber()
                        + ", which was never sent");
            }
        }
        return found;
    }

    private static void addIfAny(List<String> problems, long count, String what) {
        if (count > 0) {
            problems.add(count + " " + what);
        }
    }

    private static Histogram merged(List<MatchedRunner> pairs, Function<MatchedRunner, Histogram> micros) {
        return Histograms.merge(pairs.stream().map(micros).toList());
    }

    private long sum(ToLongFunction<MatchedRunner> field) {
        return pairs.stream().mapToLong(field).sum();
    }
}
