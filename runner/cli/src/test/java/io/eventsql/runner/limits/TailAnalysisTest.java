package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.eventsql.runner.limits.TimeSpans.Span;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.FigureTable;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TailAnalysisTest {
    private static final int MS = 1_000;

    /** 200 events, one every 10 ms, of 10 ms each; two of them take 60 ms, one after the other. */
    private static List<Span> events() {
        List<Span> events = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            events.add(new Span(i * 10L * MS, i * 10L * MS + (i == 50 || i == 56 ? 60 : 10) * MS));
        }
        return events;
    }

    private static ResultPart analyze(ActivitySampler.Sample... samples) {
        PartRecorder part = new PartRecorder("tail", "");
        TailAnalysis.addTo(part, "100/s", events(), List.of(samples));
        return part.part();
    }

    private static double value(ResultPart part, int table, int row, String column) {
        return part.tables()
                .get(table)
                .rows()
                .get(row)
                .figures()
                .getOrDefault(column, Figure.of(Double.NaN))
                .value();
    }

    @Test
    void addTo_aCauseOfTheSlowEvents_comesFirst() {
        ActivitySampler.Sample[] samples = new ActivitySampler.Sample[202];
        for (int i = 0; i < 200; i++) {
            samples[i] = sample(i * 10, i * 10 + 10, "CPU");
        }
        samples[200] = sample(510, 530, "JVM: GC pause");
        samples[201] = sample(1_000, 1_010, "JVM: GC pause");

        ResultPart part = analyze(samples);

        assertThat(value(part, 0, 0, "slow_from_ms")).isEqualTo(60);
        assertThat(value(part, 0, 0, "slow_during_s")).isCloseTo(0.120, within(1e-9));
        assertThat(value(part, 0, 0, "of_s")).isCloseTo(2.0, within(1e-9));
        assertThat(value(part, 0, 0, "p50_ms")).isCloseTo(10, within(0.1));
        assertThat(part.tables().get(1).rows())
                .extracting(FigureTable.Row::name)
                .containsExactly("JVM: GC pause", "CPU");
        assertThat(value(part, 1, 0, "slow events")).as("one of two").isEqualTo(50);
        assertThat(value(part, 1, 0, "slow time")).as("20 of 120 ms").isCloseTo(2_000 / 120.0, within(1e-9));
        assertThat(value(part, 1, 0, "other time")).as("10 of 1,880 ms").isCloseTo(1_000 / 1_880.0, within(1e-9));
        for (String share : List.of("slow events", "slow time", "other time")) {
            assertThat(value(part, 1, 1, share)).isEqualTo(100);
        }
    }

    @Test
    void addTo_samplesBeforeAndAfterTheEvents_doNotCount() {
        ResultPart part = analyze(sample(-500, 0, "CPU"), sample(2_000, 3_000, "CPU"));

        for (String share : List.of("slow events", "slow time", "other time")) {
            assertThat(value(part, 1, 0, share)).isZero();
        }
    }

    @Test
    void runnableThreads_isTheNumberBeforeTheSlash() {
        assertThat(ActivitySampler.runnableThreads("0.50 11.40 0.30 13/200 1234"))
                .isEqualTo(13);
    }

    private static ActivitySampler.Sample sample(long fromMs, long toMs, String seen) {
        return new ActivitySampler.Sample(new Span(fromMs * MS, toMs * MS), Set.of(seen));
    }
}
