package io.eventsql.runner.result;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/** A comparison table per machine of results of the main benchmark and of workloads, including older formats. Not thread-safe. */
public final class Comparison {
    private static final List<String> COLUMNS = List.of(
            "run",
            "driver",
            "durability",
            "order",
            "offered/s",
            "published/s",
            "consumed/s",
            "publish p50 ms",
            "p99 ms",
            "end to end p50 ms",
            "p99 ms",
            "lost",
            "duplicated",
            "runs",
            "result");
    private static final int FIRST_NUMBER = 4;

    /** Rates and latencies of different machines are not comparable. */
    private final Map<String, List<List<String>>> rowsByMachine = new LinkedHashMap<>();

    /**
     * Adds a result.
     *
     * @param name the name of its folder
     * @param result the content of {@code result.json}
     */
    public void add(String name, JsonNode result) {
        List<List<String>> rows = rowsByMachine.computeIfAbsent(machine(result), added -> new ArrayList<>());
        if (result.has("rate_asked")) {
            rows.add(row(name, result, result, result.path("rate_asked")));
            return;
        }
        List<JsonNode> phases = new ArrayList<>();
        result.path("phases").forEach(phase -> {
            if (phase.path("measured").asBoolean()) {
                phases.add(phase);
            }
        });
        for (JsonNode phase : phases) {
            String row =
                    phases.size() == 1 ? name : name + ", " + phase.path("name").asString();
            rows.add(row(row, result, phase, phase.path("offered_rate")));
        }
        if (phases.isEmpty()) {
            rows.add(row(name, result, result, result.path("rate_asked")));
        }
    }

    private static String machine(JsonNode result) {
        JsonNode machine = result.path("machine").isObject() ? result.path("machine") : result;
        return machine.path("cpus").asInt(0) + " CPUs, " + machine.path("os").asString("?");
    }

    private static List<String> row(String name, JsonNode result, JsonNode figures, JsonNode offered) {
        JsonNode driver = result.path("driver");
        boolean main = driver.isMissingNode();
        JsonNode publish = figures.path("publish_latency_ms");
        JsonNode endToEnd = figures.path("end_to_end_latency_ms");
        return List.of(
                name,
                main ? "eventsql" : driver.path("name").asString(),
                main
                        ? "fsync " + text(result.path("fsync")) + ", synchronous_commit "
                                + text(result.path("synchronous_commit"))
                        : driver.path("durability").asString(),
                main ? "per key" : driver.path("order").asString(),
                main && offered.asDouble() == 0 ? "as fast as possible" : number(offered, 0),
                number(figures.path("publish_rate"), 0),
                endToEnd.isObject() ? number(figures.path("consume_rate"), 0) : "–",
                number(publish.path("p50"), 3),
                number(publish.path("p99"), 3),
                number(endToEnd.path("p50"), 3),
                number(endToEnd.path("p99"), 3),
                count(result, "events_lost"),
                count(result, "events_duplicated"),
                "one run",
                verdict(result));
    }

    private static String text(JsonNode value) {
        return value.isString() ? value.stringValue() : "?";
    }

    private static String number(JsonNode value, int decimals) {
        return value.isNumber() ? String.format(Locale.ROOT, "%,." + decimals + "f", value.doubleValue()) : "–";
    }

    /** Returns the top-level count of a main benchmark result, or the sum of the consumers. */
    private static String count(JsonNode result, String field) {
        if (result.path(field).isNumber()) {
            return number(result.path(field), 0);
        }
        JsonNode consumers = result.path("consumers");
        if (!consumers.isArray() || consumers.isEmpty()) {
            return "–";
        }
        long sum = 0;
        for (JsonNode consumer : consumers) {
            sum += consumer.path(field).asLong();
        }
        return String.format(Locale.ROOT, "%,d", sum);
    }

    private static String verdict(JsonNode result) {
        if (result.path("interrupted").asBoolean(false)) {
            return "interrupted";
        }
        return result.path("passed").asBoolean(false) ? "passed" : "FAILED";
    }

    /** Returns the lines of the Markdown tables. */
    public List<String> markdown() {
        List<String> lines = new ArrayList<>();
        rowsByMachine.forEach((machine, rows) -> {
            if (rowsByMachine.size() > 1) {
                lines.addAll(lines.isEmpty() ? List.of() : List.of(""));
                lines.addAll(List.of("On " + machine + ":", ""));
            }
            lines.addAll(table(rows));
        });
        return lines;
    }

    private static List<String> table(List<List<String>> rows) {
        List<String> lines = new ArrayList<>();
        lines.add(line(COLUMNS));
        List<String> alignment = new ArrayList<>();
        for (int column = 0; column < COLUMNS.size(); column++) {
            boolean isNumber = column >= FIRST_NUMBER && column < COLUMNS.size() - 2;
            alignment.add(isNumber ? "---:" : "---");
        }
        lines.add(line(alignment));
        rows.forEach(row -> lines.add(line(row)));
        return lines;
    }

    private static String line(List<String> cells) {
        return "| "
                + String.join(
                        " | ",
                        cells.stream().map(cell -> cell.replace("|", "\\|")).toList())
                + " |";
    }
}
