package io.eventsql.runner.measure;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.load.ClockAnchor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PublishMeterTest {
    private static final ClockAnchor ANCHOR = new ClockAnchor(0, 1_000_000);

    private final PublishMeter meter = new PublishMeter();

    @Test
    void acknowledged_fromManyThreads_losesNothing() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 32; n++) {
            int thread = n;
            threads.add(Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 1_000; i++) {
                    long intended = thread * 1_000L;
                    meter.acknowledged(intended, intended + 500_000, intended + (i + 1) * 1_000_000L, 2);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }

        PhaseMeasurement measured = meter.measurement(64_000, ANCHOR);
        assertThat(measured.publishedEvents()).isEqualTo(64_000);
        assertThat(measured.latencyMicros().getTotalCount()).isEqualTo(64_000);
        assertThat(measured.latencyMicros().getValueAtPercentile(50)).isBetween(499_500L, 500_500L);
        assertThat(measured.serviceMicros().getTotalCount()).isEqualTo(64_000);
        assertThat(measured.serviceMicros().getValueAtPercentile(50)).isBetween(499_000L, 500_000L);
        assertThat(measured.firstIntendedAtMicros()).isEqualTo(1_000_000);
        assertThat(measured.lastAcknowledgedAtMicros()).isEqualTo(1_000_000 + 1_000_000 + 31);
    }

    @Test
    void acknowledged_extremeLatencies_areNeitherClampedNorDropped() {
        meter.acknowledged(0, 0, 0, 1);
        meter.acknowledged(0, 0, 3_600_000_000_000L * 24, 1);

        PhaseMeasurement measured = meter.measurement(2, ANCHOR);
        assertThat(measured.latencyMicros().getTotalCount()).isEqualTo(2);
        assertThat(measured.latencyMicros().getMinValue()).isZero();
        assertThat(measured.latencyMicros().getMaxValue()).isGreaterThanOrEqualTo(86_400_000_000L);
    }

    @Test
    void measurement_noEvents_hasNoTimes() {
        PhaseMeasurement measured = meter.measurement(0, ANCHOR);

        assertThat(measured.firstIntendedAtMicros()).isNull();
        assertThat(measured.lastAcknowledgedAtMicros()).isNull();
    }
}
