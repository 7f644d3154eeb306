package io.eventsql.runner.result;

import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.spec.WorkloadKind;
import io.eventsql.runner.trials.BlastTrial;
import io.eventsql.runner.trials.SweepTrial;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** Renders the result of trials as text. */
public final class TrialsText {
    private TrialsText() {}

    /** Returns the lines of the report. */
    public static List<String> of(TrialsResult result) {
        List<String> lines = new ArrayList<>(RunText.heading(result.identity(), result.verdict(), result.driver()));
        lines.add("");
        lines.addAll(
                result.identity().kind() == WorkloadKind.BLAST
                        ? blast(read(result.trials(), BlastTrial.class))
                        : sweep(read(result.trials(), SweepTrial.class)));
        TrialsResult.@Nullable CopyLimit limit = result.copyLimit();
        if (limit != null) {
            lines.add(String.format(
                    Locale.ROOT,
                    "A plain binary COPY over one connection stores %d events in %.1f ms",
                    limit.events(),
                    limit.durationMs()));
        }
        lines.add("");
        lines.addAll(RunText.machine(result.databases(), result.machine(), result.identity()));
        return lines;
    }

    private static <T> List<T> read(JsonNode trials, Class<T> type) {
        List<T> read = new ArrayList<>();
        trials.forEach(trial -> read.add(JsonFiles.fromTree(trial, type)));
        return read;
    }

    private static List<String> blast(List<BlastTrial> trials) {
        if (trials.isEmpty()) {
            return List.of("No completed trials");
        }
        BlastTrial first = trials.getFirst();
        return List.of(
                String.format(
                        Locale.ROOT,
                        "%d trials of %d messages, %d bytes per trial; %d messages failed",
                        trials.size(),
                        first.events() + first.failures(),
                        first.dataBytes(),
                        trials.stream().mapToLong(BlastTrial::failures).sum()),
                String.format(Locale.ROOT, "%-24s%14s%14s%14s", "", "min", "median", "max"),
                row("events/s", trials, BlastTrial::throughputEventsPerSecond),
                row("MB/s", trials, BlastTrial::bandwidthMbPerSecond),
                row("mean latency in ms", trials, BlastTrial::latencyMeanMs));
    }

    private static List<String> sweep(List<SweepTrial> trials) {
        if (trials.isEmpty()) {
            return List.of("No completed trials");
        }
        SweepTrial first = trials.getFirst();
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "Buffer of %d bytes, %s; %d databases, standbys: %s; events: %s",
                first.bufferSizeBytes(),
                first.bufferType(),
                first.nodeCount(),
                first.clusterType(),
                first.eventType()));
        lines.add(String.format(Locale.ROOT, "%-24s%14s%14s%14s", "duration (ms) by events", "min", "median", "max"));
        Map<Integer, List<SweepTrial>> byCount = trials.stream()
                .collect(Collectors.groupingBy(SweepTrial::eventCount, TreeMap::new, Collectors.toList()));
        byCount.forEach((events, some) ->
                lines.add(row(events + " (" + some.size() + " trials)", some, SweepTrial::durationMs)));
        return lines;
    }

    private static <T> String row(String what, List<T> trials, ToDoubleFunction<T> field) {
        List<Double> values =
                trials.stream().map(trial -> field.applyAsDouble(trial)).toList();
        return String.format(
                Locale.ROOT,
                "%-24s%14.1f%14.1f%14.1f",
                what,
                Collections.min(values),
                Statistics.median(values),
                Collections.max(values));
    }
}
