package io.eventsql.app.benchmark;

import static io.eventsql.app.benchmark.Batch.RUN;
import static io.eventsql.app.benchmark.Batch.measured;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.SortedMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class BenchmarkRunsTest {
    private final BenchmarkRuns runs = new BenchmarkRuns();

    @Test
    void report_unknownRun_isNull() {
        runs.record(Batch.of(new BenchmarkEvent("ffffffff", 0, false, 0, 0)).decoded(), 1);

        assertThat(runs.report(RUN, false)).isNull();
    }

    @Test
    void record_repeatedNumbers_areDuplicatesAlsoAcrossBatchesAndPartitions() {
        runs.record(Batch.ofPartition(0).addNumbers(null, 0, 1, 2, 2).decoded(), 1);
        runs.record(Batch.ofPartition(1).addNumbers(null, 2, 3).decoded(), 2);
        runs.record(Batch.ofPartition(0).addNumbers(null, 0, 900_000).decoded(), 3);

        PhaseReport report = measuredReport();
        assertThat(report.received()).isEqualTo(8);
        assertThat(report.distinct()).isEqualTo(5);
        assertThat(report.duplicates()).isEqualTo(3);
        assertThat(report.highestNumber()).isEqualTo(900_000);
    }

    @Test
    void record_decreasingNumbersOfAKey_areOrderViolations() {
        runs.record(Batch.ofPartition(0).addNumbers("a", 1, 5, 3, 4, 6).decoded(), 1);
        runs.record(Batch.ofPartition(0).addNumbers("a", 2).decoded(), 2);

        assertThat(measuredReport().orderViolations()).isEqualTo(3);
    }

    @Test
    void record_keysInTurnEachRising_areInOrder() {
        runs.record(
                Batch.ofPartition(0)
                        .addNumbers("a", 10, 11)
                        .addNumbers("b", 0, 1)
                        .decoded(),
                1);
        runs.record(Batch.ofPartition(0).addNumbers("b", 2).addNumbers("a", 12).decoded(), 2);

        assertThat(measuredReport().orderViolations()).isZero();
    }

    @Test
    void record_withoutKey_hasNoOrder() {
        runs.record(Batch.ofPartition(0).addNumbers(null, 3, 2, 1).decoded(), 1);

        assertThat(measuredReport().orderViolations()).isZero();
    }

    @Test
    void record_batchDeliveredAgain_isNoOrderViolation() {
        DecodedBatch batch = Batch.ofPartition(0).addNumbers("a", 1, 2, 3).decoded();
        runs.record(batch, 1);
        runs.record(batch, 2);

        assertThat(measuredReport().duplicates()).isEqualTo(3);
        assertThat(measuredReport().orderViolations()).isZero();
    }

    @Test
    void record_sameKeyOfOtherRunnersAndPhases_isTrackedSeparately() {
        runs.record(
                Batch.ofPartition(0)
                        .add("a", new BenchmarkEvent(RUN, 0, false, 9, 0))
                        .add("a", new BenchmarkEvent(RUN, 0, true, 8, 0))
                        .add("a", new BenchmarkEvent(RUN, 3, false, 7, 0))
                        .add("a", new BenchmarkEvent("ffffffff", 0, false, 6, 0))
                        .add("a", new BenchmarkEvent(RUN, 0, true, 9, 0))
                        .decoded(),
                1);

        List<RunnerReport> runners = runs.report(RUN, false);
        assertThat(runners).extracting(RunnerReport::runner).containsExactly(0, 3);
        RunnerReport first = runners.get(0);
        assertThat(first.measured().received()).isEqualTo(1);
        assertThat(first.warmup().received()).isEqualTo(2);
        assertThat(first.warmup().duplicates()).isZero();
        assertThat(first.warmup().orderViolations()).isZero();
        RunnerReport second = runners.get(1);
        assertThat(second.measured().received()).isEqualTo(1);
        assertThat(second.measured().orderViolations()).isZero();
        assertThat(second.warmup().received()).isZero();
        assertThat(second.warmup().highestNumber()).isEqualTo(-1);
        assertThat(runs.report("ffffffff", false)).hasSize(1);
    }

    @Test
    void record_latencies_runFromIntendedToHandled() {
        runs.record(Batch.of(new BenchmarkEvent(RUN, 0, false, 0, 1_000)).decoded(), 1_250);
        runs.record(Batch.of(new BenchmarkEvent(RUN, 0, false, 1, 1_100)).decoded(), 3_600_001_100L);

        PhaseReport report = measuredReport();
        assertThat(report.endToEndMicrosHistogram().getTotalCount()).isEqualTo(2);
        assertThat(report.endToEndMicrosHistogram().getMinValue()).isEqualTo(250);
        assertThat(report.endToEndMicrosHistogram()
                        .valuesAreEquivalent(report.endToEndMicrosHistogram().getMaxValue(), 3_600_000_000L))
                .as("an hour is not cut")
                .isTrue();
        assertThat(report.firstHandledAtMicros()).isEqualTo(1_250);
        assertThat(report.lastHandledAtMicros()).isEqualTo(3_600_001_100L);
        assertThat(report.handledBeforeIntended()).isZero();
    }

    @Test
    void record_handledBeforeIntended_isCountedAndNotLost() {
        runs.record(Batch.of(new BenchmarkEvent(RUN, 0, false, 0, 2_000)).decoded(), 1_999);

        assertThat(measuredReport().handledBeforeIntended()).isEqualTo(1);
        assertThat(measuredReport().endToEndMicrosHistogram().getTotalCount()).isEqualTo(1);
        assertThat(measuredReport().endToEndMicrosHistogram().getMaxValue()).isZero();
    }

    @Test
    void report_isASnapshot() {
        runs.record(Batch.of(measured(0)).decoded(), 1);
        PhaseReport before = measuredReport();
        runs.record(Batch.of(measured(1)).decoded(), 2);

        assertThat(before.received()).isEqualTo(1);
        assertThat(before.endToEndMicrosHistogram().getTotalCount()).isEqualTo(1);
    }

    @Test
    void report_detailed_hasNumbersAndPartitions() {
        runs.record(Batch.ofPartition(4).addNumbers(null, 0, 1, 2, 2).decoded(), 1);
        runs.record(Batch.ofPartition(3).addNumbers(null, 70_000).decoded(), 2);

        assertThat(measuredReport().detail()).isNull();
        RunnerReport runner = runs.report(RUN, true).getFirst();
        PhaseDetail detail = runner.measured().detail();
        runs.record(Batch.ofPartition(5).addNumbers(null, 3).decoded(), 3);

        assertThat(detail.partitions()).containsExactly("2/3", "2/4");
        assertThat(detail.numbers().size()).isEqualTo(4);
        assertThat(detail.numbers().add(70_000)).isFalse();
        assertThat(runner.warmup().detail().numbers().size()).isZero();
        assertThat(runner.warmup().detail().partitions()).isEmpty();
    }

    @Test
    void report_detailed_hasTheLatenciesOfEachSecond() throws Exception {
        BenchmarkEvent event = new BenchmarkEvent(RUN, 0, false, 0, 4_000_000);
        runs.record(Batch.of(event).decoded(), 4_000_100);
        runs.record(Batch.of(measured(1), measured(2)).decoded(), 6_999_999);
        runs.record(Batch.of(measured(3)).decoded(), 7_000_000);
        runs.record(Batch.of(measured(4)).decoded(), 6_999_999);

        SortedMap<Long, String> seconds =
                runs.report(RUN, true).getFirst().measured().detail().endToEndMicrosBySecond();

        assertThat(seconds).containsOnlyKeys(4L, 6L, 7L);
        assertThat(decoded(seconds.get(4L)).getMaxValue()).isEqualTo(100);
        assertThat(decoded(seconds.get(6L)).getTotalCount()).isEqualTo(2);
        assertThat(decoded(seconds.get(7L)).getTotalCount())
                .as("a second that is over does not open again")
                .isEqualTo(2);
    }

    private static Histogram decoded(String base64) throws DataFormatException {
        return Histogram.decodeFromCompressedByteBuffer(
                ByteBuffer.wrap(Base64.getDecoder().decode(base64)), 0);
    }

    @Test
    void forget_countsFromZero() {
        runs.record(Batch.of(measured(0), measured(1)).decoded(), 1);
        runs.forget(RUN);
        assertThat(runs.report(RUN, false)).isNull();

        runs.record(Batch.of(measured(1)).decoded(), 2);
        assertThat(measuredReport().received()).isEqualTo(1);
        assertThat(measuredReport().duplicates()).isZero();
    }

    @Test
    void record_moreRunsThanKept_forgetsTheOldest() {
        for (int run = 0; run < BenchmarkRuns.RUNS_MAX + 1; run++) {
            runs.record(Batch.of(new BenchmarkEvent(runId(run), 0, false, 0, 0)).decoded(), 1);
        }

        assertThat(runs.report(runId(0), false)).isNull();
        assertThat(runs.report(runId(1), false)).isNotNull();
        assertThat(runs.report(runId(BenchmarkRuns.RUNS_MAX), false)).isNotNull();
    }

    /**
     * Goal: no count is lost when partitions are handled concurrently. Method: each thread is one partition with its own
     * key. All threads send the common numbers, and each one also sends two decreasing numbers of its own.
     */
    @Test
    void record_fromManyThreads_countsExactly() throws Exception {
        int threads = 8;
        int commonNumbers = 20_000;
        int batchSize = 50;
        CountDownLatch start = new CountDownLatch(1);
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<?>> partitions = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int partition = thread;
                partitions.add(executor.submit(() -> {
                    start.await();
                    String key = "key-" + partition;
                    for (int from = 0; from < commonNumbers; from += batchSize) {
                        Batch batch = Batch.ofPartition(partition);
                        for (int number = from; number < from + batchSize; number++) {
                            batch.add(key, measured(number));
                            batch.add(key, new BenchmarkEvent(RUN, partition, true, number, 0));
                        }
                        runs.record(batch.decoded(), 1_000 + partition);
                    }
                    long own = commonNumbers + 2L * partition;
                    runs.record(
                            Batch.ofPartition(partition)
                                    .addNumbers(key, own + 1, own)
                                    .decoded(),
                            1_000 + partition);
                    return null;
                }));
            }
            start.countDown();
            for (Future<?> partition : partitions) {
                partition.get();
            }
        }

        PhaseReport report = measuredReport();
        assertThat(report.received()).isEqualTo(threads * (commonNumbers + 2L));
        assertThat(report.distinct()).isEqualTo(commonNumbers + 2L * threads);
        assertThat(report.duplicates()).isEqualTo((threads - 1L) * commonNumbers);
        assertThat(report.highestNumber()).isEqualTo(commonNumbers + 2L * threads - 1);
        assertThat(report.orderViolations()).isEqualTo(threads);
        assertThat(report.endToEndMicrosHistogram().getTotalCount()).isEqualTo(report.received());
        assertThat(report.firstHandledAtMicros()).isEqualTo(1_000);
        assertThat(report.lastHandledAtMicros()).isEqualTo(1_000 + threads - 1);
        assertThat(runs.report(RUN, false)).hasSize(threads).allSatisfy(runner -> {
            assertThat(runner.warmup().received()).isEqualTo(commonNumbers);
            assertThat(runner.warmup().duplicates()).isZero();
            assertThat(runner.warmup().orderViolations()).isZero();
        });
    }

    private PhaseReport measuredReport() {
        return runs.report(RUN, false).getFirst().measured();
    }

    private static String runId(int number) {
        return HexFormat.of().toHexDigits(number);
    }
}
