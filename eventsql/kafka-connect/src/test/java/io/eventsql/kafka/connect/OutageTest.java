package io.eventsql.kafka.connect;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class OutageTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

    @Test
    void delays_double_upToTenSeconds() {
        Outage outage = Outage.after(null, 0, MS);

        assertThat(outage.delayNanos()).isEqualTo(100 * MS);
        assertThat(Outage.after(outage, 0, MS).delayNanos()).isEqualTo(200 * MS);
        for (int i = 0; i < 10; i++) {
            outage = Outage.after(outage, 0, MS);
        }
        assertThat(outage.delayNanos()).isEqualTo(10_000 * MS);
    }

    /** An attempt that takes long delays the shards that respond. */
    @Test
    void delay_afterASlowAttempt_isLonger() {
        assertThat(Outage.after(null, 0, 500 * MS).delayNanos()).isEqualTo(5_000 * MS);
    }

    @Test
    void isOver_afterTheDelay() {
        Outage outage = Outage.after(null, 0, MS);

        assertThat(outage.isOver(100 * MS)).isFalse();
        assertThat(outage.isOver(101 * MS)).isTrue();
    }
}
