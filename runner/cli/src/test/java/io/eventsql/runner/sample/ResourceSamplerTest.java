package io.eventsql.runner.sample;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.load.LoadClock;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ResourceSamplerTest {

    /** Fails twice, then returns samples. */
    private static final class FlakyProbe implements Probe {
        private final CountDownLatch sampled = new CountDownLatch(4);

        @Override
        public List<String> columns() {
            return List.of("a.samples", "a.nothing");
        }

        @Override
        public List<Double> sample(long nowNanos) throws IOException {
            sampled.countDown();
            if (sampled.getCount() >= 2) {
                throw new IOException("not yet");
            }
            return Arrays.asList(7.0, null);
        }
    }

    @Test
    void sample_failures_areReportedOnceAndSamplingContinues() throws InterruptedException {
        ConcurrentLinkedQueue<String> problems = new ConcurrentLinkedQueue<>();
        FlakyProbe probe = new FlakyProbe();
        long origin = LoadClock.SYSTEM.nanos();
        try (ResourceSampler sampler =
                ResourceSampler.start(List.of(probe), LoadClock.SYSTEM, () -> origin, problems::add)) {
            probe.sampled.await();
            ResourceSeries table = sampler.table(10);

            assertThat(problems).containsExactly("Sampling a.samples failed: not yet");
            assertThat(table.columns().get("a.samples")).contains(7.0).contains((Double) null);
            assertThat(table.columns().get("a.nothing")).containsOnlyNulls();
            assertThat(table.t()).hasSize(10);
        }
    }

    /** Takes no time here, but each second an hour of CPU time in another process. */
    private static final class ExpensiveProbe implements Probe {
        private int samples;

        @Override
        public List<String> columns() {
            return List.of("expensive.samples");
        }

        @Override
        public List<Double> sample(long nowNanos) {
            samples++;
            return List.of(1.0);
        }

        @Override
        public long otherCpuNanos() {
            return Duration.ofHours(samples).toNanos();
        }
    }

    @Test
    void samplerShare_includesOtherProcesses() throws InterruptedException {
        long origin = LoadClock.SYSTEM.nanos();
        try (ResourceSampler sampler =
                ResourceSampler.start(List.of(new ExpensiveProbe()), LoadClock.SYSTEM, () -> origin, problem -> {})) {
            Double share = null;
            // The first two samples of the share may both precede the first one of the probe.
            while (share == null || share < 1) {
                TimeUnit.MILLISECONDS.sleep(20);
                share = sampler.table(60).samplerShare();
            }
        }
    }

    @Test
    void rate_isTheGrowthEachSecond() {
        RateCounter rate = new RateCounter();

        assertThat(rate.update(100, 0)).isNull();
        assertThat(rate.update(150, 500_000_000)).isEqualTo(100);
        assertThat(rate.update(10, 1_000_000_000)).as("counted from 0 again").isNull();
        assertThat(rate.update(20, 2_000_000_000)).isEqualTo(10);
    }

    @Test
    void mean_isOfTheKnownValues() {
        ResourceSeries series =
                new ResourceSeries(1, List.of(0, 1, 2, 3), Map.of("a", Arrays.asList(1.0, null, 3.0, 9.0)));

        assertThat(series.mean("a", -1, 3)).isEqualTo(2);
        assertThat(series.mean("a", 1, 2)).isNull();
        assertThat(series.mean("b", 0, 2)).isNull();
        assertThat(series.samplerShare()).isNull();
    }

    @Test
    void samplerShare_isTheSumOfTheRunners() {
        ResourceSeries series = new ResourceSeries(
                1,
                List.of(0, 1),
                Map.of(
                        "runner-0.sampler_share",
                        Arrays.asList(null, 0.002),
                        "runner-1.sampler_share",
                        List.of(0.001, 0.003)));

        assertThat(series.samplerShare()).isEqualTo(0.004);
        assertThat(ResourceSeries.samplerLine(0.004)).isEqualTo("Sampling took 0.40 % of the machine's processors");
    }
}
