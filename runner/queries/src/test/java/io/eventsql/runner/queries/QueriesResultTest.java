package io.eventsql.runner.queries;

import static org.assertj.core.api.Assertions.assertThat;

import com.networknt.schema.InputFormat;
import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The result has the documented form, can be read again, and is shown like every other. */
class QueriesResultTest {
    private static final int RATE = 1_000;

    @TempDir
    private Path folder;

    private static Map<String, List<Double>> rates() {
        Map<String, List<Double>> rates = new LinkedHashMap<>();
        rates.put(QueryParts.CONSUMER, List.of(1_000_000.0, 500_000.0, 2_000_000.0));
        rates.put("session", List.of(800_000.0, 400_000.0, 1_500_000.0));
        rates.put(QueryParts.withKafka("session"), List.of(400_000.0, 800_000.0, 750_000.0));
        return rates;
    }

    private static Histogram ages(long... millis) {
        Histogram ages = Histograms.create();
        for (long ms : millis) {
            ages.recordValue(ms * 1_000);
        }
        return ages;
    }

    private static RunResult result(Histogram ages) {
        List<ResultPart> parts =
                List.of(QueryParts.throughput(rates()), QueryParts.latency(RATE, Map.of("session", ages)));
        return new QueriesResult("bash scripts/run_queries.bash --kafka", "c0ffee", 2, Map.of("events", "1000"))
                .of(Instant.EPOCH, new DatabaseInfo("shard0", "18.6", "on", "on", "", 0), parts);
    }

    @Test
    void writtenResult_isValid_andIsReadAgain() throws IOException {
        Path file = folder.resolve("result.json");
        List<String> report = RunFolder.writeFile(file, result(ages(3, 4, 90)));

        Schema schema = SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
                .getSchema(Files.readString(Path.of("../result.schema.json")));
        assertThat(schema.validate(Files.readString(file), InputFormat.JSON)).isEmpty();
        assertThat(RunFolder.report(folder)).isEqualTo(report);
        assertThat(report)
                .anySatisfy(line -> assertThat(line).contains("session", "800,000", "750,000"))
                .anySatisfy(line -> assertThat(line).contains("results", "p50_ms", "p99_ms"));
    }

    @Test
    void throughput_comparesWaysOfTheSameRound() {
        List<Double> vsConsumer = figure("vs consumer");
        List<Double> vsKafka = figure("vs Kafka source");

        assertThat(vsConsumer).containsExactly(0.8, 0.8, 0.75);
        assertThat(vsKafka).containsExactly(2.0, 0.5, 2.0);
    }

    private static List<Double> figure(String column) {
        return QueryParts.throughput(rates()).tables().getFirst().rows().stream()
                .filter(row -> row.name().equals("session"))
                .map(row -> row.figures().get(column).rounds())
                .findFirst()
                .orElseThrow();
    }

    @Test
    void queryWithoutResults_isAProblem() {
        RunResult.Verdict verdict = result(ages()).verdict();

        assertThat(verdict.passed()).isFalse();
        assertThat(verdict.problems()).singleElement().asString().contains("session");
    }
}
