package io.eventsql.runner.queries;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;

/** The parts of the result: rates and latencies as tables of figures. */
final class QueryParts {
    /** The way that the others are compared with. */
    static final String CONSUMER = "the library's consumer";

    private static final String KAFKA = ", Kafka source";
    private static final String UNIT = "events/s";
    private static final String RATE = "events_per_second";

    private QueryParts() {}

    /** Returns the name of the way in which Flink's Kafka source runs a query. */
    static String withKafka(String query) {
        return query + KAFKA;
    }

    /**
     * Returns what was read per second. A query has what the Kafka source reached in its row.
     *
     * @param rates by way, with a value for each round; the consumer is one of them
     */
    static ResultPart throughput(Map<String, List<Double>> rates) {
        PartRecorder part = new PartRecorder("throughput", "how many stored events are read per second, in turns");
        Figure consumer = figure(rates, CONSUMER);
        rates.keySet().stream().filter(way -> !way.endsWith(KAFKA)).forEach(way -> {
            Figure rate = figure(rates, way);
            part.add("way", way, RATE, rate);
            if (!way.equals(CONSUMER)) {
                part.add("way", way, "vs consumer", rate.ratioTo(consumer));
            }
            if (rates.containsKey(withKafka(way))) {
                Figure kafka = figure(rates, withKafka(way));
                part.add("way", way, "kafka_" + RATE, kafka);
                part.add("way", way, "vs Kafka source", rate.ratioTo(kafka));
            }
        });
        return part.part();
    }

    private static Figure figure(Map<String, List<Double>> rates, String way) {
        return Figure.ofRounds(rates.getOrDefault(way, List.of()), UNIT);
    }

    /**
     * Returns how old results are when they arrive; a query without any is a problem.
     *
     * @param micros the ages by query
     */
    static ResultPart latency(int eventsPerSecond, Map<String, Histogram> micros) {
        PartRecorder part = new PartRecorder(
                "latency", "age of a result: since its event was published, its window ended, or its last event");
        part.add("published", Figure.of((double) eventsPerSecond, UNIT));
        micros.forEach((query, ages) -> {
            part.add("query", query, "results", Figure.of(ages.getTotalCount()));
            part.addLatency("query", query, "", Percentiles.ofMicros(ages));
            part.addHistogram(query, ages);
            part.requireNone(ages.getTotalCount() == 0 ? 1 : 0, "query without results: " + query);
        });
        return part.part();
    }
}
