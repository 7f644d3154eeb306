package io.eventsql.runner.consumption;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.consumption.RunReport.PhaseDetail;
import io.eventsql.runner.consumption.RunReport.PhaseReport;
import io.eventsql.runner.consumption.RunReport.RunnerReport;
import io.eventsql.runner.measure.Histograms;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class MergedRunReportTest {
    private static final String RUN = "ab12cd34";

    @Test
    void merge_disjointNumbers_addUp() {
        MergedRunReport merged = MergedRunReport.merge(
                RUN,
                3,
                List.of(
                        app(runner(0, seen(100, List.of("0/1", "0/2"), 0, 2))),
                        app(runner(0, seen(50, List.of("0/3"), 1, 3, 4)), runner(1, seen(70, List.of("0/3"), 0)))));

        assertThat(merged.members()).isEqualTo(3);
        assertThat(merged.partitionsOfSeveralMembers()).isZero();
        assertThat(merged.run().runners()).extracting(RunnerReport::runner).containsExactly(0, 1);
        PhaseReport first = merged.run().of(0).measured();
        assertThat(first.received()).isEqualTo(5);
        assertThat(first.distinct()).isEqualTo(5);
        assertThat(first.duplicates()).isZero();
        assertThat(first.highestNumber()).isEqualTo(4);
        assertThat(first.firstHandledAtMicros()).isEqualTo(50);
        assertThat(first.lastHandledAtMicros()).isEqualTo(1_100);
        Histogram latencies = Histograms.decode(first.endToEndMicrosHistogram());
        assertThat(latencies.getTotalCount()).isEqualTo(5);
        assertThat(latencies.getMinValue()).isEqualTo(50);
        assertThat(latencies.getMaxValue()).isEqualTo(100);
        Map<Long, Histogram> seconds = merged.latencies();
        assertThat(seconds).containsOnlyKeys(0L, 1L);
        assertThat(seconds.get(0L).getTotalCount()).isEqualTo(3);
        assertThat(seconds.get(1L).getTotalCount()).isEqualTo(3);
        assertThat(merged.run().of(1).measured().distinct()).isEqualTo(1);
        assertThat(merged.run().of(0).warmup()).isEqualTo(PhaseReport.NONE);
    }

    @Test
    void merge_lostAndDuplicatedEvents_doNotCancelOut() {
        // Of 0 to 4, number 3 is missing and number 1 was received by both, so five events were received.
        PhaseReport merged = MergedRunReport.merge(
                        RUN,
                        2,
                        List.of(
                                app(runner(0, seen(1, List.of("0/1"), 0, 1))),
                                app(runner(0, seen(1, List.of("0/2"), 1, 2, 4)))))
                .run()
                .of(0)
                .measured();

        assertThat(merged.received()).isEqualTo(5);
        assertThat(merged.distinct()).isEqualTo(4);
        assertThat(merged.duplicates()).isEqualTo(1);
    }

    @Test
    void merge_partitionThatMoved_isCounted() {
        MergedRunReport merged = MergedRunReport.merge(
                RUN,
                2,
                List.of(
                        app(runner(0, seen(1, List.of("0/1", "0/2"), 0)), runner(1, seen(1, List.of("0/1"), 0))),
                        app(runner(1, seen(1, List.of("0/2", "1/1"), 1)))));

        assertThat(merged.partitionsOfSeveralMembers()).isEqualTo(1);
    }

    @Test
    void merge_noReports_isEmpty() {
        MergedRunReport merged = MergedRunReport.merge(RUN, 2, List.of());

        assertThat(merged.run().runners()).isEmpty();
        assertThat(merged.members()).isEqualTo(2);
    }

    @Test
    void merge_withoutOrWithWrongNumbers_isRejected() {
        PhaseReport whole = seen(1, List.of("0/1"), 0, 1);

        assertThatThrownBy(() -> merge(new PhaseReport(2, 2, 0, 1, 0, 0, 1, 1, whole.endToEndMicrosHistogram(), null)))
                .hasMessage("an app does not report the received numbers");
        assertThatThrownBy(() ->
                        merge(new PhaseReport(3, 3, 0, 1, 0, 0, 1, 1, whole.endToEndMicrosHistogram(), whole.detail())))
                .hasMessage("an app reports 3 distinct events, but 2 numbers");
    }

    private static void merge(PhaseReport seen) {
        MergedRunReport.merge(RUN, 2, List.of(app(runner(0, seen))));
    }

    private static RunReport app(RunnerReport... runners) {
        return new RunReport(RUN, "app", List.of(runners));
    }

    private static RunnerReport runner(int number, PhaseReport measured) {
        return new RunnerReport(number, measured, PhaseReport.NONE);
    }

    /**
     * @param micros the latency, and when the first was handled; the last was a millisecond later
     * @param numbers the first is also the second in which all were handled
     */
    private static PhaseReport seen(long micros, List<String> partitions, long... numbers) {
        NumberSet set = new NumberSet();
        Arrays.stream(numbers).forEach(set::add);
        Histogram latencies = Histograms.create();
        latencies.recordValueWithCount(micros, numbers.length);
        long second = numbers[0];
        return new PhaseReport(
                numbers.length,
                set.size(),
                numbers.length - set.size(),
                Arrays.stream(numbers).max().orElse(-1),
                0,
                0,
                micros,
                micros + 1_000,
                Histograms.encode(latencies),
                new PhaseDetail(set.encode(), partitions, Map.of(second, Histograms.encode(latencies))));
    }
}
