package io.eventsql.runner.queries;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Measures several ways to read the same stream in turns, so that each round has all of them. Not thread-safe. */
final class Rotation {
    /** One way to read the stream once. */
    @FunctionalInterface
    interface Measurement {
        /** Returns the events per second. */
        double run() throws Exception;
    }

    private final Map<String, Measurement> ways = new LinkedHashMap<>();
    private final Map<String, List<Double>> rates = new LinkedHashMap<>();

    void add(String name, Measurement measurement) {
        ways.put(name, measurement);
        rates.put(name, new ArrayList<>());
    }

    /**
     * Measures each way once, which warms up, and then in each round.
     *
     * @param progress receives a line before each round
     */
    void run(int rounds, Consumer<String> progress) throws Exception {
        progress.accept("Warming up...");
        for (Measurement measurement : ways.values()) {
            measurement.run();
        }
        for (int round = 1; round <= rounds; round++) {
            progress.accept("Round " + round + " of " + rounds + "...");
            for (Map.Entry<String, Measurement> way : ways.entrySet()) {
                rates.getOrDefault(way.getKey(), List.of()).add(way.getValue().run());
            }
        }
    }

    /** Returns the events per second of each way and round. */
    Map<String, List<Double>> rates() {
        return rates;
    }
}
