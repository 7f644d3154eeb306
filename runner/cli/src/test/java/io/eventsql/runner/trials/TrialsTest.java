package io.eventsql.runner.trials;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.TrialFiles;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.testing.ManualClock;
import io.eventsql.runner.testing.SyntheticService;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class TrialsTest {
    private static final long MS = 1_000_000;

    private static final RunSpec.EnvironmentSpec ONE_DATABASE =
            new RunSpec.EnvironmentSpec("postgres", 1, "none", Map.of());

    private final ManualClock clock = new ManualClock();
    private final StopSignal stop = new StopSignal();
    private final List<String> done = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();
    private boolean clears = true;
    private SyntheticService service;

    /** A driver whose streams share one service. Records its calls. */
    private final Driver driver = new Driver() {
        @Override
        public String version() {
            return "Synthetic 1.0";
        }

        @Override
        public void createStream(String name, int partitions) {
            done.add("create " + name + " " + partitions);
        }

        @Override
        public PublishTarget publisher(String stream) {
            return service;
        }

        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
            throw new AssertionError("trials do not consume");
        }

        @Override
        public void clear(String stream) {
            if (!clears) {
                throw new UnsupportedOperationException("cannot");
            }
            done.add("clear " + stream);
        }

        @Override
        public void close() {}
    };

    @Test
    void blast_measuresFromTheFirstCallToTheLastAnswer() throws Exception {
        // Message i of a trial of four takes 10, 20, 30, 40 ms; all are sent at once.
        service = new SyntheticService(clock, call -> (call % 4 + 1) * 10 * MS);

        List<BlastTrial> blast = trials().blast(new RunSpec.BlastSpec(4, 2, 1 << 30), 1_000);

        assertThat(blast).extracting(BlastTrial::trial).containsExactly(1, 2);
        BlastTrial trial = blast.getFirst();
        assertThat(trial.durationSeconds()).isEqualTo(0.040);
        assertThat(trial.events()).isEqualTo(4);
        assertThat(trial.dataBytes()).isEqualTo(4_000);
        assertThat(trial.failures()).isZero();
        assertThat(trial.throughputEventsPerSecond()).isCloseTo(100, within(1e-9));
        assertThat(trial.bandwidthMbPerSecond()).isCloseTo(0.1, within(1e-9));
        assertThat(trial.latencyMeanMs()).isCloseTo(25, within(1e-9));
        assertThat(trial.latencyStddevMs()).isCloseTo(Math.sqrt(125), within(1e-9));
        assertThat(problems).isEmpty();
        assertThat(service.calls).hasSize(12).allMatch(call -> call.events().size() == 1);
        assertThat(service.calls).allMatch(call -> call.events().getFirst().value().length == 1_000);
    }

    @Test
    void blast_moreBytesThanTheCap_hasFewerMessages() throws Exception {
        service = new SyntheticService(clock, call -> MS);

        List<BlastTrial> blast = trials().blast(new RunSpec.BlastSpec(10_000, 1, 5_500), 1_000);

        assertThat(blast.getFirst().events()).isEqualTo(5);
    }

    @Test
    void blast_eachTrialStartsEmpty() throws Exception {
        service = new SyntheticService(clock, call -> MS);

        trials().blast(new RunSpec.BlastSpec(1, 2, 1 << 30), 100);

        assertThat(done).containsExactly("create blast_ab12cd34 3", "clear blast_ab12cd34", "clear blast_ab12cd34");
    }

    @Test
    void blast_driverThatCannotClear_getsNewStreams() throws Exception {
        clears = false;
        service = new SyntheticService(clock, call -> MS);

        trials().blast(new RunSpec.BlastSpec(1, 2, 1 << 30), 100);

        assertThat(done)
                .containsExactly("create blast_ab12cd34 3", "create blast_ab12cd34_1 3", "create blast_ab12cd34_2 3");
    }

    @Test
    void blast_unansweredCalls_areFailures() throws Exception {
        service = new SyntheticService(clock, call -> call == 3 ? Long.MAX_VALUE / 2 : MS);

        List<BlastTrial> blast = trials().blast(new RunSpec.BlastSpec(2, 1, 1 << 30), 100);

        assertThat(blast.getFirst().failures()).isEqualTo(1);
        assertThat(blast.getFirst().events()).isEqualTo(1);
        assertThat(problems).singleElement().asString().contains("trial 1").contains("no answer within 60 s");
    }

    @Test
    void sweep_waiting_callsSequentially() throws Exception {
        service = new SyntheticService(clock, call -> 7 * MS);

        List<SweepTrial> sweep = trials().sweep(new RunSpec.SweepSpec(List.of(10), 2, 350, true), 100, ONE_DATABASE);

        // Three events of 100 bytes a call: 3 + 3 + 3 + 1.
        assertThat(sweep).hasSize(2);
        assertThat(sweep.getFirst())
                .isEqualTo(new SweepTrial(
                        "none", 1, "bytes-100", "waiting", 350, 10, 1, 28.0, "2027-01-15T08:00:00.028Z"));
        assertThat(service.calls.subList(4, 8))
                .extracting(call -> call.events().size())
                .containsExactly(3, 3, 3, 1);
        assertThat(service.calls.subList(4, 8).stream()
                        .flatMap(call -> call.events().stream())
                        .map(event -> BenchmarkEvent.decode(event.value()).number()))
                .containsExactly(0L, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L);
    }

    @Test
    void sweep_notWaiting_waitsOnceAtTheEnd() throws Exception {
        service = new SyntheticService(clock, call -> 7 * MS);

        List<SweepTrial> sweep =
                trials().sweep(new RunSpec.SweepSpec(List.of(1, 10), 1, 350, false), 100, ONE_DATABASE);

        assertThat(sweep).extracting(SweepTrial::eventCount).containsExactly(1, 10);
        assertThat(sweep).extracting(SweepTrial::durationMs).containsExactly(7.0, 7.0);
        assertThat(sweep).extracting(SweepTrial::bufferType).containsOnly("non-waiting");
    }

    @Test
    void sweep_eventLargerThanTheBuffer_isSentAlone() throws Exception {
        service = new SyntheticService(clock, call -> MS);

        trials().sweep(new RunSpec.SweepSpec(List.of(3), 1, 1, true), 100, ONE_DATABASE);

        assertThat(service.calls).hasSize(6).allMatch(call -> call.events().size() == 1);
    }

    @Test
    void sweep_trialWithFailures_isInvalid() throws Exception {
        LongUnaryOperator second = call -> call == 2 ? Long.MAX_VALUE / 2 : MS;
        service = new SyntheticService(clock, second);

        List<SweepTrial> sweep = trials().sweep(new RunSpec.SweepSpec(List.of(1), 2, 100, false), 100, ONE_DATABASE);

        assertThat(sweep).extracting(SweepTrial::trial).containsExactly(1);
        assertThat(problems).singleElement().asString().contains("1 events, trial 2");
    }

    @Test
    void sweep_stopSignal_discardsTheIncompleteTrial() throws Exception {
        service = new SyntheticService(clock, call -> MS);
        service.whenCalled(call -> {
            if (call == 15) {
                stop.raise(StopSignal.Reason.INTERRUPTED);
            }
        });

        List<SweepTrial> sweep = trials().sweep(new RunSpec.SweepSpec(List.of(5), 10, 100, true), 100, ONE_DATABASE);

        // Calls 0 to 4 are the warm-up, 5 to 9 and 10 to 14 are complete trials.
        assertThat(sweep).extracting(SweepTrial::trial).containsExactly(1, 2);
    }

    @Test
    void files_haveOneRowPerTrial(@TempDir Path folder) throws Exception {
        TrialFiles.writeCsv(
                folder.resolve("trials.csv"),
                JsonFiles.toTree(List.of(new SweepTrial(
                        "quorum", 3, "account_created", "waiting", 1_024, 100, 7, 12.5, "2026-11-21T10:00:00Z"))));
        TrialFiles.writeLines(
                folder.resolve("trials.jsonl"),
                JsonFiles.toTree(List.of(new BlastTrial(1, 0.5, 10, 1_000, 0, 20, 0.002, 1.5, 0.25))));

        assertThat(folder.resolve("trials.csv")).hasContent("""
                        cluster_type,node_count,event_type,buffer_type,buffer_size_bytes,event_count,trial,duration_ms,measured_on
                        quorum,3,account_created,waiting,1024,100,7,12.5,2026-11-21T10:00:00Z
                        """);
        assertThat(Files.readString(folder.resolve("trials.jsonl")))
                .isEqualTo("{\"trial\":1,\"duration_seconds\":0.5,\"events\":10,\"data_bytes\":1000,\"failures\":0,"
                        + "\"throughput_events_per_second\":20.0,\"bandwidth_mb_per_second\":0.002,"
                        + "\"latency_mean_ms\":1.5,\"latency_stddev_ms\":0.25}\n");
    }

    private Trials trials() {
        return new Trials(new Trials.TrialContext(driver, "ab12cd34", 3, clock, stop, problems::add, line -> {}));
    }
}
