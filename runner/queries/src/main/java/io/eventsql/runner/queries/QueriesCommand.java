package io.eventsql.runner.queries;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Measures queries of Apache Flink over a stream of an embedded server. */
@Command(
        name = "bash scripts/run_queries.bash",
        description = {
            "Measures queries of Apache Flink over a stream on an embedded server, with its defaults.",
            "",
            "Prints for each query how many events per second it processes, and the time until its results arrive; before them what"
                    + " the library's consumer, the reader, and Flink's source alone read in the same run."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class QueriesCommand implements Callable<Integer> {
    private static final int PERCENT = 100;
    private static final double P50 = 50;
    private static final double P99 = 99;

    @Option(names = "--events", defaultValue = "1000000", description = "stored events (default: ${DEFAULT-VALUE})")
    private long events;

    @Option(
            names = "--rounds",
            defaultValue = "3",
            description =
                    "how often consumer, reader, source and pass-through are measured, in turns; medians are printed"
                            + " (default: ${DEFAULT-VALUE})")
    private int rounds;

    @Option(names = "--only", description = "a query to measure; repeatable (default: all)")
    private List<String> only = new ArrayList<>();

    @Option(names = "--parallelism", defaultValue = "2", description = "of the jobs (default: ${DEFAULT-VALUE})")
    private int parallelism;

    @Option(
            names = "--latency-seconds",
            defaultValue = "5",
            description = "how long the latency of each query is measured; 0: not at all (default: ${DEFAULT-VALUE})")
    private long latencySeconds;

    @Option(
            names = "--latency-rate",
            defaultValue = "1000",
            description = "events per second while latency is measured (default: ${DEFAULT-VALUE})")
    private int latencyRate;

    @Option(
            names = "--kafka",
            description = "a Kafka broker, host:port: the queries also run with Flink's Kafka source")
    private @Nullable String kafka;

    @Option(names = "--queries", defaultValue = "runner/queries/sql", description = "their folder", hidden = true)
    private Path folder = Path.of("runner/queries/sql");

    @Spec
    private @Nullable CommandSpec spec;

    private QueriesCommand() {}

    public static void main(String[] arguments) {
        int status = new CommandLine(new QueriesCommand()).execute(arguments);
        System.exit(status); // Flink's threads may live on
    }

    /** One way to read the stream once. */
    @FunctionalInterface
    private interface Measurement {
        double run() throws Exception;
    }

    private record Way(String name, Measurement measurement, List<Double> rates) {
        Way(String name, Measurement measurement) {
            this(name, measurement, new ArrayList<>());
        }

        double median() {
            return rates.stream().sorted().toList().get(rates.size() / 2);
        }
    }

    @Override
    public Integer call() throws Exception {
        List<Query> queries = Query.all(folder).stream()
                .filter(query -> only.isEmpty() || only.contains(query.name()))
                .toList();
        long startMs = Instant.now().toEpochMilli();
        try (MeasuredCluster cluster = new MeasuredCluster(1)) {
            out().printf(Locale.ROOT, "%,d events on one shard, parallelism %d%n", events, parallelism);
            cluster.publish(events, startMs, new Positions(1));
            Throughput throughput = new Throughput(cluster, folder, events, parallelism);
            @Nullable KafkaTopic topic = null;
            if (kafka != null) {
                topic = new KafkaTopic(kafka);
                topic.publish(events, startMs, new Positions(1));
            }
            measureReading(throughput, topic);
            measureQueries(throughput, topic, queries);
            if (latencySeconds > 0) {
                measureLatency(cluster, queries);
            }
        }
        return 0;
    }

    private void measureReading(Throughput throughput, @Nullable KafkaTopic topic) throws Exception {
        Query passThrough = Query.all(folder).getFirst();
        List<Way> ways = new ArrayList<>(List.of(
                new Way("plain consumer", throughput::plainConsumer),
                new Way("reader", throughput::reader),
                new Way("source alone", throughput::source),
                new Way("pass-through", () -> throughput.query(passThrough))));
        if (topic != null) {
            KafkaTopic given = topic;
            ways.add(new Way("pass-through, Kafka", () -> throughput.kafkaQuery(passThrough, given)));
        }
        for (int round = 0; round <= rounds; round++) { // the first one warms up
            for (Way way : ways) {
                double rate = way.measurement().run();
                if (round > 0) {
                    way.rates().add(rate);
                }
            }
        }
        double consumer = ways.getFirst().median();
        out().printf(
                        Locale.ROOT,
                        "%-22s %12s %12s %12s %22s%n",
                        "reading",
                        "events/s",
                        "min",
                        "max",
                        "% of plain consumer");
        for (Way way : ways) {
            out().printf(
                            Locale.ROOT,
                            "%-22s %,12.0f %,12.0f %,12.0f %22.0f%n",
                            way.name(),
                            way.median(),
                            way.rates().stream().min(Double::compare).orElseThrow(),
                            way.rates().stream().max(Double::compare).orElseThrow(),
                            PERCENT * way.median() / consumer);
        }
    }

    private void measureQueries(Throughput throughput, @Nullable KafkaTopic topic, List<Query> queries)
            throws Exception {
        out().printf(Locale.ROOT, "%-22s %12s %12s%n", "query", "events/s", topic == null ? "" : "with Kafka");
        for (Query query : queries) {
            String withKafka =
                    topic == null ? "" : String.format(Locale.ROOT, "%,.0f", throughput.kafkaQuery(query, topic));
            out().printf(Locale.ROOT, "%-22s %,12.0f %12s%n", query, throughput.query(query), withKafka);
        }
    }

    private void measureLatency(MeasuredCluster cluster, List<Query> queries) throws Exception {
        out().printf(
                        Locale.ROOT,
                        "%-22s %12s %12s %12s%n",
                        "query at " + latencyRate + "/s",
                        "results",
                        "p50 ms",
                        "p99 ms");
        for (Query query : queries) {
            Histogram latency = Latency.measure(cluster, folder, query, latencyRate, latencySeconds, parallelism);
            out().printf(
                            Locale.ROOT,
                            "%-22s %,12d %12d %12d%n",
                            query,
                            latency.getTotalCount(),
                            latency.getValueAtPercentile(P50),
                            latency.getValueAtPercentile(P99));
        }
    }

    private PrintWriter out() {
        return Objects.requireNonNull(spec).commandLine().getOut();
    }
}
