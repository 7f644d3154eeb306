package io.eventsql.runner.result;

import io.eventsql.runner.measure.Statistics;
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

/** Summarizes the trials of a blast or a sweep as figures, for the report. */
final class TrialsPart {
    private static final String NAME = "trials";

    private TrialsPart() {}

    /** @param trials of one kind, see {@link RunResult#trials()} */
    static ResultPart of(JsonNode trials, RunResult.@Nullable CopyLimit copyLimit) {
        if (trials.isEmpty()) {
            return new PartRecorder(NAME, "none was completed").part();
        }
        PartRecorder part = trials.get(0).has("event_count")
                ? sweep(read(trials, SweepTrial.class))
                : blast(read(trials, BlastTrial.class));
        if (copyLimit != null) {
            part.add(
                    "a plain binary COPY over one connection, ms",
                    copyLimit.events() + " events",
                    "median",
                    Figure.of(copyLimit.durationMs()));
        }
        return part.part();
    }

    private static <T> List<T> read(JsonNode trials, Class<T> type) {
        List<T> read = new ArrayList<>();
        trials.forEach(trial -> read.add(JsonFiles.fromTree(trial, type)));
        return read;
    }

    private static PartRecorder blast(List<BlastTrial> trials) {
        BlastTrial first = trials.getFirst();
        PartRecorder part = new PartRecorder(
                NAME,
                String.format(
                        Locale.ROOT,
                        "%d trials of %d messages, %d bytes per trial; %d messages failed",
                        trials.size(),
                        first.events() + first.failures(),
                        first.dataBytes(),
                        trials.stream().mapToLong(BlastTrial::failures).sum()));
        addRange(part, "", "events/s", trials, BlastTrial::throughputEventsPerSecond);
        addRange(part, "", "MB/s", trials, BlastTrial::bandwidthMbPerSecond);
        addRange(part, "", "mean latency in ms", trials, BlastTrial::latencyMeanMs);
        return part;
    }

    private static PartRecorder sweep(List<SweepTrial> trials) {
        SweepTrial first = trials.getFirst();
        PartRecorder part = new PartRecorder(
                NAME,
                String.format(
                        Locale.ROOT,
                        "buffer of %d bytes, %s; %d databases, standbys: %s; events: %s",
                        first.bufferSizeBytes(),
                        first.bufferType(),
                        first.nodeCount(),
                        first.clusterType(),
                        first.eventType()));
        Map<Integer, List<SweepTrial>> byCount = trials.stream()
                .collect(Collectors.groupingBy(SweepTrial::eventCount, TreeMap::new, Collectors.toList()));
        byCount.forEach((events, some) -> addRange(
                part,
                "duration (ms) by events",
                events + " (" + some.size() + " trials)",
                some,
                SweepTrial::durationMs));
        return part;
    }

    private static <T> void addRange(
            PartRecorder part, String table, String row, List<T> trials, ToDoubleFunction<T> field) {
        List<Double> values =
                trials.stream().map(trial -> field.applyAsDouble(trial)).toList();
        part.add(table, row, "min", Figure.of(Collections.min(values)))
                .add(table, row, "median", Figure.of(Statistics.median(values)))
                .add(table, row, "max", Figure.of(Collections.max(values)));
    }
}
