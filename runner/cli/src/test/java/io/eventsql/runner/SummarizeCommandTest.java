package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.consumption.CompilationTime;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.consumption.WarmupWatch;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.PhaseResult;
import io.eventsql.runner.result.RunnerResult;
import io.eventsql.runner.result.RunnerResult.Ending;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSettings;
import io.eventsql.runner.testing.ResultSchema;
import io.eventsql.runner.testing.StubApp;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class SummarizeCommandTest {
    private static final String RUN = "ab12cd34";
    private static final Ending CONSUMED = new Ending(true, false, false, false);
    /** The intended send time of the first event. */
    private static final long START = 1_800_000_000_000_000L;

    private static final String WHOLE_WARMUP = seenByMember(0, 100, "0/0");
    private static final String NO_WARMUP = seenByMember(0, 0, "0/0");

    @TempDir
    private Path folder;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void summarize_goodRun_passesWithAllFields() throws IOException {
        // Two runners of 1,000 events: 2 s and 4 s until the last acknowledgement.
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 4_000_000, List.of()), CONSUMED);

        int status = summarize(appRun(seen(1_000, 0, 0, 3_900_000), seen(1_000, 0, 0, 4_012_345)));

        assertThat(status).as(err.toString()).isZero();
        JsonNode result = result();
        assertThat(result.propertyNames())
                .contains(
                        "shards",
                        "partitions",
                        "members",
                        "events_asked",
                        "events_published",
                        "events_consumed",
                        "events_lost",
                        "events_duplicated",
                        "order_violations",
                        "publish_errors",
                        "rate_asked",
                        "publish_rate",
                        "consume_rate",
                        "consume_after_publish_ms",
                        "warmup_events",
                        "publish_latency_ms",
                        "end_to_end_latency_ms",
                        "fsync",
                        "synchronous_commit",
                        "postgres_version",
                        "java_version",
                        "cpus",
                        "recycled_wal_mb",
                        "git_commit",
                        "command");
        assertThat(result.get("run").asString()).isEqualTo(RUN);
        assertThat(result.get("passed").asBoolean()).isTrue();
        assertThat(result.get("problems").isEmpty()).isTrue();
        assertThat(result.get("shards").asInt()).isEqualTo(3);
        assertThat(result.get("partitions").asInt()).isEqualTo(10);
        assertThat(result.get("members").asInt()).isEqualTo(1);
        assertThat(result.get("partitions_of_several_members").asInt()).isZero();
        assertThat(result.get("events_asked").asLong()).isEqualTo(2_000);
        assertThat(result.get("events_published").asLong()).isEqualTo(2_000);
        assertThat(result.get("events_consumed").asLong()).isEqualTo(2_000);
        assertThat(result.get("events_lost").asLong()).isZero();
        assertThat(result.get("rate_asked").asLong()).isEqualTo(1_000);
        assertThat(result.get("publish_rate").asDouble()).isEqualTo(500 + 250);
        assertThat(result.get("consume_rate").asDouble()).isEqualTo(498.5, within(0.05));
        assertThat(result.get("consume_after_publish_ms").asDouble()).isEqualTo(12.345);
        assertThat(result.get("warmup_events").asLong()).isEqualTo(200);
        assertThat(result.get("publish_latency_ms").get("p50").asDouble()).isEqualTo(0.5, within(0.001));
        assertThat(result.get("publish_latency_ms").get("p99").asDouble()).isEqualTo(0.99, within(0.001));
        assertThat(result.get("publish_latency_ms").get("p999").asDouble()).isEqualTo(0.999, within(0.001));
        assertThat(result.get("publish_latency_ms").get("max").asDouble()).isEqualTo(1, within(0.001));
        assertThat(result.get("service_latency_ms").get("p50").asDouble()).isEqualTo(0.5, within(0.001));
        assertThat(result.get("end_to_end_latency_ms").get("p50").asDouble()).isEqualTo(7, within(0.01));
        assertThat(result.get("fsync").asString()).isEqualTo("on");
        assertThat(result.get("synchronous_commit").asString()).isEqualTo("on");
        assertThat(result.get("postgres_version").asString()).isEqualTo("18.6");
        assertThat(result.get("cpus").asInt()).isEqualTo(2);
        assertThat(result.get("recycled_wal_mb").asInt()).isEqualTo(1_024);
        assertThat(result.get("git_commit").asString()).isEqualTo("c0ffee");
        assertThat(result.get("command").asString()).isEqualTo("bash run");
        assertThat(result.get("per_runner").size()).isEqualTo(2);
        assertThat(result.get("per_runner").get(1).get("app_clock").toString())
                .isEqualTo("{\"ahead_ms\":1.25,\"uncertainty_ms\":0.5}");
        assertThat(result.get("per_runner").get(1).get("publish_rate").asDouble())
                .isEqualTo(250);
        Histogram merged = Histograms.decode(
                result.get("histograms").get("publish_latency_micros").asString());
        assertThat(merged.getTotalCount()).isEqualTo(2_000);
        assertThat(Files.readString(folder.resolve("report.txt")))
                .isEqualTo(out.toString())
                .contains("Benchmark run ab12cd34: passed", "Lost 0, duplicated 0, out of order 0, publish errors 0");
    }

    @Test
    void summarize_lostEvents_fails() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(appRun(seen(1_000, 0, 0, 1), seen(997, 0, 0, 1)))).isEqualTo(1);

        assertThat(result().get("events_lost").asLong()).isEqualTo(3);
        assertThat(result().get("per_runner").get(0).get("events_lost").asLong())
                .isZero();
        assertThat(result().get("per_runner").get(1).get("events_lost").asLong())
                .isEqualTo(3);
        assertThat(problems()).containsExactly("3 events were lost");
    }

    @Test
    void summarize_oneRunnersDuplicates_doNotHideAnothersLoss() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(appRun(seen(1_000, 5, 0, 1), seen(995, 0, 0, 1)))).isEqualTo(1);

        assertThat(problems()).containsExactly("5 events were lost", "5 events were delivered more than once");
        assertThat(result().get("events_duplicated").asLong()).isEqualTo(5);
    }

    @Test
    void summarize_outOfOrder_fails() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(appRun(seen(1_000, 0, 2, 1), seen(1_000, 0, 0, 1))))
                .isEqualTo(1);

        assertThat(result().get("order_violations").asLong()).isEqualTo(2);
        assertThat(problems()).containsExactly("2 events were out of order for their key");
    }

    @Test
    void summarize_timeout_fails() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), new Ending(false, true, false, false));

        assertThat(summarize(appRun(seen(1_000, 0, 0, 1), seen(1_000, 0, 0, 1))))
                .isEqualTo(1);

        assertThat(result().get("timed_out").asBoolean()).isTrue();
        assertThat(problems()).containsExactly("Runner 1: not everything was consumed within 120 s");
    }

    @Test
    void summarize_publishErrors_failAndAreMergedByClass() throws IOException {
        List<ErrorCount> errors = List.of(new ErrorCount("x.Failure", 2, "first"));
        write(0, phase(998, 2_000_000, errors), CONSUMED);
        write(1, phase(998, 2_000_000, errors), CONSUMED);

        assertThat(summarize(appRun(seen(1_000, 0, 0, 1), seen(1_000, 0, 0, 1))))
                .isEqualTo(1);

        assertThat(result().get("publish_errors").asLong()).isEqualTo(4);
        assertThat(problems()).containsExactly("4 events failed to publish");
        assertThat(out.toString()).contains("4 × x.Failure: first");
    }

    @Test
    void summarize_interruptedRun_countsLossAmongAcknowledgedEvents() throws IOException {
        write(0, phase(600, 2_000_000, List.of()), new Ending(false, false, true, false));
        write(1, phase(600, 2_000_000, List.of()), new Ending(false, false, true, false));

        assertThat(summarize(appRun(seen(600, 0, 0, 1), seen(600, 0, 0, 1)))).isEqualTo(1);

        assertThat(result().get("interrupted").asBoolean()).isTrue();
        assertThat(result().get("events_lost").asLong()).isZero();
        assertThat(problems()).containsExactly("Runner 0 was interrupted", "Runner 1 was interrupted");
        assertThat(out.toString()).startsWith("Benchmark run ab12cd34: INTERRUPTED");
    }

    @Test
    void summarize_aRunnerWithoutResult_fails() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(appRun(seen(1_000, 0, 0, 1)))).isEqualTo(1);

        assertThat(problems()).containsExactly("1 of 2 runners wrote a result");
    }

    @Test
    void summarize_appWithoutEvents_everythingIsLost() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(new StubApp.Answer(404, ""))).isEqualTo(1);

        assertThat(result().get("events_lost").asLong()).isEqualTo(2_000);
        assertThat(problems()).contains("2000 events were lost", "200 warm-up events were lost");
    }

    @Test
    void summarize_appFails_isReportedAsProblem() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(new StubApp.Answer(500, "broken"))).isEqualTo(1);

        assertThat(problems()).first().asString().contains("status 500: broken");
    }

    @Test
    void summarize_severalMembers_areMerged() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);
        StubApp.Answer first = answer(WHOLE_WARMUP, seenByMember(0, 600, "0/0"), seenByMember(500, 1_000, "0/0"));
        StubApp.Answer second = answer(NO_WARMUP, seenByMember(600, 1_000, "0/1"), seenByMember(0, 500, "0/1"));

        assertThat(summarizeMembers(first, second, new StubApp.Answer(404, "")))
                .as(err.toString())
                .isZero();

        assertThat(result().get("members").asInt()).isEqualTo(3);
        assertThat(result().get("events_consumed").asLong()).isEqualTo(2_000);
        assertThat(result().get("partitions_of_several_members").asInt()).isZero();
        assertThat(result().get("end_to_end_latency_ms").get("p50").asDouble()).isEqualTo(7, within(0.01));
        assertThat(Histograms.decode(result().get("histograms")
                                .get("end_to_end_micros")
                                .asString())
                        .getTotalCount())
                .isEqualTo(2_000);
        assertThat(out.toString()).contains("3 members").doesNotContain("More than one member");
    }

    @Test
    void summarize_lostAndDuplicatedEvents_areBothDetected() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);
        // Of runner 0, both members received number 599 and none received 600, 1,000 events in total.
        StubApp.Answer first = answer(WHOLE_WARMUP, seenByMember(0, 600, "0/0"), seenByMember(0, 1_000, "0/0"));
        StubApp.Answer second = answer(
                NO_WARMUP,
                seenByMember(LongStream.concat(LongStream.of(599), LongStream.range(601, 1_000)), "0/0"),
                seenByMember(0, 0, "0/0"));

        assertThat(summarizeMembers(first, second)).isEqualTo(1);

        assertThat(problems()).containsExactly("1 events were lost", "1 events were delivered more than once");
        assertThat(result().get("per_runner").get(0).get("events_lost").asLong())
                .isEqualTo(1);
        assertThat(result().get("per_runner").get(0).get("events_duplicated").asLong())
                .isEqualTo(1);
        assertThat(result().get("partitions_of_several_members").asInt()).isEqualTo(1);
    }

    @Test
    void summarize_unresponsiveMember_itsEventsAreLost() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);
        StubApp.Answer first = answer(WHOLE_WARMUP, seenByMember(0, 600, "0/0"), seenByMember(0, 1_000, "0/0"));

        assertThat(summarizeMembers(first, new StubApp.Answer(500, "broken"))).isEqualTo(1);

        assertThat(problems()).first().asString().contains("status 500: broken");
        assertThat(problems()).contains("400 events were lost");
    }

    @Test
    void summarize_membersWithoutDetail_cannotBeMerged() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);
        StubApp.Answer answer = appRun(seen(1_000, 0, 0, 1), seen(1_000, 0, 0, 1));

        assertThat(summarizeMembers(answer, new StubApp.Answer(404, ""))).isEqualTo(1);

        assertThat(problems())
                .contains("Cannot merge the reports of the apps: an app does not report the received numbers");
    }

    @Test
    void summarize_numbersNeverSent_fail() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        assertThat(summarize(appRun(seen(1_001, 0, 0, 1), seen(1_000, 0, 0, 1))))
                .isEqualTo(1);

        assertThat(problems()).containsExactly("Runner 0: the app received event number 1000, which was never sent");
    }

    @Test
    void summarize_noResults_failsWithoutResult() {
        assertThat(summarize(new StubApp.Answer(404, ""))).isEqualTo(1);

        assertThat(err.toString()).contains("No runner results in");
        assertThat(folder.resolve("result.json")).doesNotExist();
    }

    @Test
    void summarize_invalidInput_exitsWith2() throws IOException {
        assertThat(execute("summarize", "--run", "AB12CD34", "--runner-results", folder.toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("--run (RUN) must be 8 lower-case hexadecimal characters");

        assertThat(execute(
                        "summarize",
                        "--run",
                        RUN,
                        "--runner-results",
                        folder.resolve("none").toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("--runner-results (RUNNER_RESULTS) must be a folder");

        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        assertThat(execute("summarize", "--run", "00000000", "--runner-results", folder.toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("is of ab12cd34");
    }

    @Test
    void summarize_processorsBusy_reportsSaturation() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED, 0.964);
        write(1, phase(1_000, 4_000_000, List.of()), CONSUMED, 0.9);

        summarize(appRun(seen(1_000, 0, 0, 1), seen(1_000, 0, 0, 1)));

        assertThat(result().get("machine_busy_share").asDouble()).isEqualTo(0.964);
        assertThat(result().get("machine_saturated").asBoolean()).isTrue();
        assertThat(out.toString())
                .contains("The machine's processors were 96 % busy: latencies include waiting for a processor.");
    }

    @Test
    void summarize_processorsNotBusy_reportsNoSaturation() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED, 0.5);
        write(1, phase(1_000, 4_000_000, List.of()), CONSUMED, 0.899);

        summarize(appRun(seen(1_000, 0, 0, 1), seen(1_000, 0, 0, 1)));

        assertThat(result().get("machine_busy_share").asDouble()).isEqualTo(0.899);
        assertThat(result().get("machine_saturated").asBoolean()).isFalse();
        assertThat(out.toString()).doesNotContain("waiting for a processor");
    }

    @Test
    void summarize_jvms_areReported() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 2_000_000, List.of()), CONSUMED);

        summarize(appRun(seen(1_000, 0, 0, 1), seen(1_000, 0, 0, 1)));

        JsonNode result = result();
        assertThat(result.get("warmup_seconds").asDouble()).isEqualTo(12.5);
        assertThat(result.get("warmup_warm").asBoolean()).as("runner 1 was not").isFalse();
        assertThat(result.get("compilation_seconds").asDouble())
                .as("of both runners, and of the app once")
                .isEqualTo(0.7);
        assertThat(result.get("runner_java_options").toString()).isEqualTo("[\"-Xmx1g\"]");
        assertThat(result.get("app_java_options").toString()).isEqualTo("[\"-Xmx2g\",\"-Da=b\"]");
        assertThat(out.toString())
                .contains(
                        "after which the JVMs still compiled",
                        "Compilers of the JVMs were active for 0.7 s while measuring",
                        "JVM options of the runners: -Xmx1g\n",
                        "JVM options of the apps: -Xmx2g -Da=b\n");
    }

    private void write(int runner, PhaseMeasurement measured, Ending ending) {
        write(runner, measured, ending, 0.1);
    }

    private void write(int runner, PhaseMeasurement measured, Ending ending, double busyShare) {
        RunSettings settings = new RunSettings(
                new RunSettings.Identity(RUN, runner, 2),
                new RunSettings.Stream("account_created", 10, "app", 120),
                new RunSettings.Load(500, 1_000, 1, 50, false, 5, 0),
                new RunSettings.Events(null, false, 1_000));
        List<ShardServerInfo> shards = List.of(
                new ShardServerInfo(0, "on", "on", "18.6"),
                new ShardServerInfo(1, "on", "on", "18.6"),
                new ShardServerInfo(2, "on", "on", "18.6"));
        JsonFiles.write(
                folder.resolve("runner-" + runner + ".json"),
                new RunnerResult(
                        settings,
                        shards,
                        PhaseResult.of(measured),
                        PhaseResult.of(phase(100, 1_000_000, List.of())),
                        ending,
                        "25.0.1",
                        series(runner, busyShare),
                        new StartBarrier.ClockOffset(runner + 0.25, 0.5),
                        new RunnerResult.Jvms(
                                new WarmupWatch.Outcome(12.5 - runner, true, runner == 0, 7.0),
                                new CompilationTime(100, 500),
                                List.of("-Xmx1g"),
                                List.of("-Xmx2g", "-Da=b"))));
    }

    /** 10 events per second for (runner number + 1) seconds. */
    private static RunnerResult.Series series(int runner, double busyShare) {
        RunSeries series = new RunSeries(0);
        series.start(0);
        long end = (runner + 1) * 1_000_000_000L;
        series.addPhase("measured", 0, end);
        for (long nanos = 0; nanos < end; nanos += 100_000_000) {
            series.recordSent(nanos, nanos, 1);
            series.recordAcknowledged(nanos, 2_000 + runner * 2_000, 1);
        }
        TimeSeries seconds = series.finish(end);
        ResourceSeries resources = new ResourceSeries(
                1,
                seconds.t(),
                Map.of("runner.cpu_cores", List.of(0.5), ResourceSeries.MACHINE_BUSY_SHARE, List.of(busyShare)));
        return RunnerResult.Series.of(series, seconds, resources);
    }

    @Test
    void summarize_seconds_areMergedFromAllRunnersAndTheApp() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 4_000_000, List.of()), CONSUMED);

        summarize(appRun(seenBySecond(1_000, Map.of(0, 3, 1, 15)), seenBySecond(1_000, Map.of(0, 9, 1, 3))));

        JsonNode result = result();
        assertThat(result.get("format").asInt()).isEqualTo(2);
        assertThat(result.get("kind").asString()).isEqualTo("publish");
        JsonNode series = result.get("series");
        assertThat(series.get("t").toString()).isEqualTo("[0,1]");
        assertThat(series.get("phase").toString()).isEqualTo("[\"measured\",\"measured\"]");
        assertThat(series.get("publish_rate").toString()).isEqualTo("[20.0,10.0]");
        assertThat(series.get("publish_max_ms").get(0).asDouble()).isEqualTo(4, within(0.01));
        assertThat(series.get("publish_p50_ms").get(0).asDouble()).isEqualTo(2, within(0.01));
        assertThat(series.get("consume_rate").toString()).isEqualTo("[12.0,18.0]");
        assertThat(series.get("lag").toString()).isEqualTo("[8.0,0.0]");
        assertThat(series.get("end_to_end_p50_ms").get(1).asDouble()).isEqualTo(5, within(0.01));
        assertThat(Files.readAllLines(folder.resolve("series.csv")))
                .hasSize(3)
                .last()
                .asString()
                .startsWith("1,measured,10.0,10.0,18.0,");
        assertThat(Files.readAllLines(folder.resolve("resources.csv"))).hasSize(3);
        assertThat(countsBySecond("publish.hlog")).containsExactly(20L, 10L);
        assertThat(countsBySecond("end_to_end.hlog")).containsExactly(12L, 18L);
        assertThat(result.get("resources").get("columns").toString())
                .contains("\"runner-0.cpu_cores\":[0.5,null]", "\"runner-1.cpu_cores\":[0.5,null]");
    }

    @Test
    void summarize_appWithoutSeconds_omitsThem() throws IOException {
        write(0, phase(1_000, 2_000_000, List.of()), CONSUMED);
        write(1, phase(1_000, 4_000_000, List.of()), CONSUMED);

        summarize(appRun(seen(1_000, 0, 0, 3_900_000), seen(1_000, 0, 0, 4_012_345)));

        JsonNode series = result().get("series");
        assertThat(series.get("consume_rate").toString()).isEqualTo("[null,null]");
        assertThat(series.get("lag").toString()).isEqualTo("[null,null]");
        assertThat(countsBySecond("end_to_end.hlog")).isEmpty();
    }

    private List<Long> countsBySecond(String log) throws IOException {
        List<Long> counts = new ArrayList<>();
        try (HistogramLogReader reader =
                new HistogramLogReader(folder.resolve(log).toFile())) {
            // hasNext() would be true where only comments follow.
            for (EncodableHistogram second = reader.nextIntervalHistogram();
                    second != null;
                    second = reader.nextIntervalHistogram()) {
                counts.add(((Histogram) second).getTotalCount());
            }
        }
        return counts;
    }

    private static PhaseMeasurement phase(long published, long tookMicros, List<ErrorCount> errors) {
        Histogram latency = Histograms.create();
        for (long event = 1; event <= published; event++) {
            latency.recordValue(event);
        }
        long failed = errors.stream().mapToLong(ErrorCount::events).sum();
        return new PhaseMeasurement(
                published + failed,
                published,
                errors,
                START,
                START + tookMicros,
                latency,
                latency,
                Histograms.create());
    }

    private static String seen(long distinct, long duplicates, long violations, long lastHandledAfterMicros) {
        Histogram endToEnd = Histograms.create();
        endToEnd.recordValueWithCount(7_000, distinct);
        return """
                {"received":%d,"distinct":%d,"duplicates":%d,"highestNumber":%d,"orderViolations":%d,"handledBeforeIntended":0,\
                "firstHandledAtMicros":%d,"lastHandledAtMicros":%d,"endToEndMicrosHistogram":"%s"}""".formatted(
                        distinct + duplicates,
                        distinct,
                        duplicates,
                        distinct - 1,
                        violations,
                        START,
                        START + lastHandledAfterMicros,
                        Histograms.encode(endToEnd));
    }

    /** @param events the number of events handled in each second of the run, each after 5 ms */
    private static String seenBySecond(long distinct, Map<Integer, Integer> events) {
        NumberSet set = new NumberSet();
        LongStream.range(0, distinct).forEach(set::add);
        String seconds = events.entrySet().stream()
                .map(second -> {
                    Histogram latencies = Histograms.create();
                    latencies.recordValueWithCount(5_000, second.getValue());
                    return "\"%d\":\"%s\"".formatted(START / 1_000_000 + second.getKey(), Histograms.encode(latencies));
                })
                .collect(Collectors.joining(","));
        String counts = seen(distinct, 0, 0, 1);
        return counts.substring(0, counts.length() - 1)
                + ",\"detail\":{\"numbers\":\"%s\",\"partitions\":[],\"endToEndMicrosBySecond\":{%s}}}"
                        .formatted(set.encode(), seconds);
    }

    /** @param to exclusive */
    private static String seenByMember(long from, long to, String partition) {
        return seenByMember(LongStream.range(from, to), partition);
    }

    /** Returns the report of a member with detail. */
    private static String seenByMember(LongStream numbers, String partition) {
        NumberSet set = new NumberSet();
        numbers.forEach(set::add);
        String counts = seen(set.size(), 0, 0, 1);
        return counts.substring(0, counts.length() - 1)
                + ",\"detail\":{\"numbers\":\"%s\",\"partitions\":[\"%s\"],\"endToEndMicrosBySecond\":{}}}"
                        .formatted(set.encode(), partition);
    }

    private static StubApp.Answer appRun(String... measured) {
        return answer(seen(100, 0, 0, 0), measured);
    }

    /** @param warmup the warm-up report of each runner */
    private static StubApp.Answer answer(String warmup, String... measured) {
        StringBuilder runners = new StringBuilder();
        for (int runner = 0; runner < measured.length; runner++) {
            runners.append(runner == 0 ? "" : ",")
                    .append("{\"runner\":%d,\"measured\":%s,\"warmup\":%s}"
                            .formatted(runner, measured[runner], warmup));
        }
        return new StubApp.Answer(200, "{\"run\":\"" + RUN + "\",\"consumer\":\"app\",\"runners\":[" + runners + "]}");
    }

    private int summarize(StubApp.Answer answer) {
        try (StubApp app = StubApp.start(request -> request.equals("GET /benchmark-runs/" + RUN + "?detail=true")
                ? answer
                : new StubApp.Answer(400, request))) {
            return execute(
                    "summarize",
                    "--run",
                    RUN,
                    "--app-url",
                    app.uri().toString(),
                    "--runner-results",
                    folder.toString(),
                    "--out",
                    folder.resolve("result.json").toString(),
                    "--command",
                    "bash run",
                    "--git-commit",
                    "c0ffee",
                    "--recycled-wal-mb",
                    "1024",
                    "--cpus",
                    "2");
        }
    }

    private int summarizeMembers(StubApp.Answer... answers) {
        List<StubApp> apps = new ArrayList<>();
        try {
            for (StubApp.Answer answer : answers) {
                apps.add(StubApp.start(request -> request.equals("GET /benchmark-runs/" + RUN + "?detail=true")
                        ? answer
                        : new StubApp.Answer(400, request)));
            }
            String urls = apps.stream().map(app -> app.uri().toString()).collect(Collectors.joining(","));
            return execute(
                    "summarize",
                    "--run=" + RUN,
                    "--app-url=" + urls,
                    "--runner-results=" + folder,
                    "--out=" + folder.resolve("result.json"));
        } finally {
            apps.forEach(StubApp::close);
        }
    }

    private int execute(String... arguments) {
        CommandLine commandLine = Runner.commandLine(Map.of());
        return commandLine
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments);
    }

    private JsonNode result() throws IOException {
        ResultSchema.requireValid(folder.resolve("result.json"));
        return new JsonMapper().readTree(Files.readString(folder.resolve("result.json")));
    }

    private List<String> problems() throws IOException {
        return result().get("problems").valueStream().map(JsonNode::asString).toList();
    }
}
