package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class CloseSignalTest {
    private final CloseSignal signal = new CloseSignal();

    @Test
    void isClosingAfter_interrupted_isNotMistakenForClosing() {
        Thread.currentThread().interrupt();
        long startedAt = System.nanoTime();
        assertThat(signal.isClosingAfter(50)).isFalse();
        assertThat(System.nanoTime() - startedAt).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(50));
        assertThat(Thread.interrupted()).as("left interrupted").isFalse();
    }

    @Test
    void isClosingAfter_closed_returnsAtOnce() {
        signal.close();
        assertThat(signal.isClosingAfter(TimeUnit.HOURS.toMillis(1))).isTrue();
    }
}
