package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.eventsql.runner.limits.TailResult.Circumstance;
import io.eventsql.runner.limits.TimeSpans.Span;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TailResultTest {
    private static final int MS = 1_000;

    /** 200 events, one every 10 ms, of 10 ms each; two of them take 60 ms, one after the other. */
    private static List<Span> events() {
        List<Span> events = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            events.add(new Span(i * 10L * MS, i * 10L * MS + (i == 50 || i == 56 ? 60 : 10) * MS));
        }
        return events;
    }

    @Test
    void attribute_aCauseOfTheSlowEvents_comesFirst() {
        List<ActivitySample> samples = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            samples.add(sample(i * 10, i * 10 + 10, "CPU"));
        }
        samples.add(sample(510, 530, "JVM: GC pause"));
        samples.add(sample(1_000, 1_010, "JVM: GC pause"));

        TailResult.RateResult result = TailResult.attribute(100, events(), samples, 0.005);

        assertThat(result.slowFromMs()).isEqualTo(60);
        assertThat(result.slowSeconds()).isCloseTo(0.120, within(1e-9));
        assertThat(result.otherSeconds()).isCloseTo(1.880, within(1e-9));
        assertThat(result.latencyMs().p50()).isCloseTo(10, within(0.1));
        assertThat(result.circumstances()).extracting(Circumstance::what).containsExactly("JVM: GC pause", "CPU");
        Circumstance pause = result.circumstances().getFirst();
        assertThat(pause.slowEventsShare()).as("one of two").isEqualTo(0.5);
        assertThat(pause.slowTimeShare()).as("20 of 120 ms").isCloseTo(20 / 120.0, within(1e-9));
        assertThat(pause.otherTimeShare()).as("10 of 1,880 ms").isCloseTo(10 / 1_880.0, within(1e-9));
        assertThat(result.circumstances().getLast()).isEqualTo(new Circumstance("CPU", 1, 1, 1));
    }

    @Test
    void attribute_samplesBeforeAndAfterTheEvents_doNotCount() {
        TailResult.RateResult result =
                TailResult.attribute(100, events(), List.of(sample(-500, 0, "CPU"), sample(2_000, 3_000, "CPU")), 0);

        assertThat(result.circumstances()).containsExactly(new Circumstance("CPU", 0, 0, 0));
    }

    @Test
    void runnableThreads_isTheNumberBeforeTheSlash() {
        assertThat(ActivitySampler.runnableThreads("0.50 11.40 0.30 13/200 1234"))
                .isEqualTo(13);
    }

    @Test
    void lines_showEachCircumstance() {
        TailResult.RateResult rate =
                TailResult.attribute(100, events(), List.of(sample(500, 560, "IO: WalSync")), 0.005);

        assertThat(new TailResult(Map.of("fsync", "on"), List.of(rate)).lines())
                .anyMatch(line -> line.matches("  IO: WalSync +100.0 % +50.0 % +0.0 %"))
                .anyMatch(line -> line.contains("slow from 60.0 ms, during 0.1 s of 2.0 s")
                        && line.endsWith("the sampler took 0.50 % of the machine"))
                .contains("{fsync=on}");
    }

    private static ActivitySample sample(long fromMs, long toMs, String seen) {
        return new ActivitySample(new Span(fromMs * MS, toMs * MS), Set.of(seen));
    }
}
