package io.eventsql.runner.queries;

import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
            "Measures for each query how many events per second it processes, and the time until its results arrive; next to them what"
                    + " the library's consumer, the reader, and Flink's source alone read in the same run."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class QueriesCommand implements Callable<Integer> {
    @Option(names = "--events", defaultValue = "1000000", description = "stored events (default: ${DEFAULT-VALUE})")
    private long events;

    @Option(
            names = "--rounds",
            defaultValue = "3",
            description = "how often each way is measured, in turns, after a first time that warms up"
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

    @Option(names = "--kafka-version", defaultValue = "unknown", description = "of the broker, recorded in the result")
    private String kafkaVersion = "";

    @Option(
            names = "--out",
            defaultValue = "result.json",
            description = "result file; report.txt is written next to it")
    private Path file = Path.of("result.json");

    @Option(names = "--command", defaultValue = "unknown", description = "recorded in the result")
    private String command = "";

    @Option(names = "--git-commit", defaultValue = "unknown", description = "recorded in the result")
    private String gitCommit = "";

    @Option(names = "--cpus", defaultValue = "0", description = "processors of the machine (0: detected)")
    private int cpus;

    @Option(names = "--queries", defaultValue = "runner/queries/sql", description = "their folder", hidden = true)
    private Path folder = Path.of("runner/queries/sql");

    @Spec
    private @Nullable CommandSpec spec;

    private QueriesCommand() {}

    public static void main(String[] arguments) {
        int status = new CommandLine(new QueriesCommand()).execute(arguments);
        System.exit(status); // Flink's threads may live on
    }

    @Override
    public Integer call() throws Exception {
        Instant startedAt = Instant.now();
        List<Query> queries = Query.all(folder).stream()
                .filter(query -> only.isEmpty() || only.contains(query.name()))
                .toList();
        try (MeasuredCluster cluster = new MeasuredCluster(1)) {
            cluster.publish(events, startedAt.toEpochMilli(), new Positions(1));
            List<ResultPart> parts = new ArrayList<>();
            parts.add(throughput(cluster, queries, startedAt.toEpochMilli()));
            if (latencySeconds > 0) {
                parts.add(latency(cluster, queries));
            }
            RunResult result = new QueriesResult(command, gitCommit, processors(), settings())
                    .of(startedAt, cluster.databaseInfo(), parts);
            RunFolder.writeFile(file, result).forEach(out()::println);
            return result.verdict().passed() ? 0 : 1;
        }
    }

    private ResultPart throughput(MeasuredCluster cluster, List<Query> queries, long startMs) throws Exception {
        Throughput throughput = new Throughput(cluster, folder, events, parallelism);
        Rotation rotation = new Rotation();
        rotation.add(QueryParts.CONSUMER, throughput::plainConsumer);
        rotation.add("reader, one thread", throughput::reader);
        rotation.add("source alone", throughput::source);
        queries.forEach(query -> rotation.add(query.name(), () -> throughput.query(query)));
        if (kafka != null) {
            KafkaTopic topic = new KafkaTopic(kafka);
            topic.publish(events, startMs, new Positions(1));
            queries.forEach(query ->
                    rotation.add(QueryParts.withKafka(query.name()), () -> throughput.kafkaQuery(query, topic)));
        }
        rotation.run(rounds, out()::println);
        return QueryParts.throughput(rotation.rates());
    }

    private ResultPart latency(MeasuredCluster cluster, List<Query> queries) throws Exception {
        Map<String, Histogram> micros = new LinkedHashMap<>();
        for (Query query : queries) {
            out().println("Latency of " + query + "...");
            micros.put(query.name(), Latency.measure(cluster, folder, query, latencyRate, latencySeconds, parallelism));
        }
        return QueryParts.latency(latencyRate, micros);
    }

    private Map<String, String> settings() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("events", String.valueOf(events));
        settings.put("rounds", String.valueOf(rounds));
        settings.put("parallelism", String.valueOf(parallelism));
        settings.put("latency_seconds", String.valueOf(latencySeconds));
        settings.put("latency_rate", String.valueOf(latencyRate));
        if (kafka != null) {
            settings.put("kafka_version", kafkaVersion);
        }
        return settings;
    }

    private int processors() {
        return cpus == 0 ? Runtime.getRuntime().availableProcessors() : cpus;
    }

    private PrintWriter out() {
        return Objects.requireNonNull(spec).commandLine().getOut();
    }
}
