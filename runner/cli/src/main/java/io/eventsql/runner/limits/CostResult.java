package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.eventsql.runner.measure.RatioInterval;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * What an event costs under several loads.
 *
 * @param settings the settings of the measurement
 * @param server the settings of the server, by name
 * @param loads the results by load
 * @param lastToFirst the figures of the last load divided by those of the first one, of the rounds in pairs;
 *     {@code null} if the loads are not to be compared
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record CostResult(
        LimitsSettings.CostLoad settings,
        Map<String, String> server,
        List<Load> loads,
        @Nullable Map<String, RatioInterval> lastToFirst) {

    private static final List<Figure> FIGURES = List.of(
            new Figure("events_per_second", Cost::seconds, Cost::publishedEvents),
            new Figure("handled_per_event", Cost::publishedEvents, Cost::handledEvents),
            new Figure("server_cores", Cost::seconds, Cost::serverCpuSeconds),
            new Figure("client_cores", Cost::seconds, Cost::clientCpuSeconds),
            new Figure("server_us_per_event", Cost::publishedEvents, cost -> cost.serverCpuSeconds() * 1e6),
            new Figure("client_us_per_event", Cost::publishedEvents, cost -> cost.clientCpuSeconds() * 1e6),
            new Figure("transactions_per_second", Cost::seconds, Cost::transactions),
            new Figure("transactions_per_event", Cost::publishedEvents, Cost::transactions),
            new Figure("blocks_hit_per_event", Cost::publishedEvents, Cost::blocksHit),
            new Figure("wal_bytes_per_event", Cost::publishedEvents, Cost::walBytes),
            new Figure("wal_per_published_byte", Cost::publishedBytes, Cost::walBytes),
            new Figure("same_without_page_images", Cost::publishedBytes, Cost::walBytesWithoutImages),
            new Figure("page_images_per_1000_events", Cost::publishedEvents, cost -> cost.walImages() * 1e3),
            new Figure("checkpoints_per_interval", cost -> 1, Cost::checkpoints));

    /** A ratio of two counters. */
    private record Figure(String name, ToDoubleFunction<Cost> of, ToDoubleFunction<Cost> value) {
        RatioInterval median(List<Cost> rounds) {
            return RatioInterval.of(
                    rounds.stream().mapToDouble(of).boxed().toList(),
                    rounds.stream().mapToDouble(value).boxed().toList());
        }

        List<Double> perRound(List<Cost> rounds) {
            return rounds.stream()
                    .map(cost -> value.applyAsDouble(cost) / of.applyAsDouble(cost))
                    .toList();
        }
    }

    /**
     * The costs of one load: medians of the rounds with bootstrap 95 % intervals, by the name of the figure.
     *
     * @param name the name of the load
     * @param steady the figures without a checkpoint
     * @param checkpointed those with a checkpoint at the beginning of each interval; empty if not measured
     * @param steadyRounds what was counted without a checkpoint, by round
     * @param checkpointedRounds what was counted with one, by round
     */
    public record Load(
            String name,
            Map<String, RatioInterval> steady,
            Map<String, RatioInterval> checkpointed,
            List<Cost> steadyRounds,
            List<Cost> checkpointedRounds) {

        static Load of(String name, List<Cost> steady, List<Cost> checkpointed) {
            return new Load(name, figures(steady), figures(checkpointed), steady, checkpointed);
        }

        private static Map<String, RatioInterval> figures(List<Cost> rounds) {
            Map<String, RatioInterval> figures = new LinkedHashMap<>();
            if (!rounds.isEmpty()) {
                FIGURES.forEach(figure -> figures.put(figure.name, figure.median(rounds)));
            }
            return figures;
        }
    }

    /** Returns the same result with the ratios of the last load to the first one. */
    CostResult withLastToFirst() {
        Map<String, RatioInterval> ratios = new LinkedHashMap<>();
        for (Figure figure : FIGURES) {
            ratios.put(
                    figure.name,
                    RatioInterval.of(
                            figure.perRound(loads.getFirst().steadyRounds),
                            figure.perRound(loads.getLast().steadyRounds)));
        }
        return new CostResult(settings, server, loads, ratios);
    }

    /** @param title what was measured */
    List<String> lines(String title) {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(title + "; median of " + settings.rounds() + " rounds of " + settings.seconds()
                + " s (95 % interval); a client is this process, with its compilers");
        for (Load load : loads) {
            lines.add(row(load.name, "steady", load.checkpointed.isEmpty() ? "" : "with a checkpoint"));
            load.steady.forEach(
                    (name, figure) -> lines.add(row("  " + name, text(figure), text(load.checkpointed.get(name)))));
        }
        if (lastToFirst != null) {
            lines.add(loads.getLast().name + " / " + loads.getFirst().name);
            lastToFirst.forEach((name, ratio) -> lines.add(row("  " + name, text(ratio), "")));
        }
        lines.add(server.toString());
        return lines;
    }

    private static String row(String name, String steady, String checkpointed) {
        return String.format(Locale.ROOT, "%-30s%36s%36s", name, steady, checkpointed)
                .stripTrailing();
    }

    private static String text(@Nullable RatioInterval figure) {
        if (figure == null) {
            return "";
        }
        String number = figure.median() >= 100 ? "%,.0f" : "%,.3f";
        return String.format(
                Locale.ROOT,
                number + " (" + number + " to " + number + ")",
                figure.median(),
                figure.low(),
                figure.high());
    }
}
