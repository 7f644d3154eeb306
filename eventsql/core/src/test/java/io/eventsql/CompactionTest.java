package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class CompactionTest {
    @Test
    void tombstoneDelay_isTruncatedToMilliseconds() {
        assertThat(new Compaction(Duration.ofMillis(1_500).plusNanos(7)).tombstoneDelay())
                .isEqualTo(Duration.ofMillis(1_500));
        assertThat(Compaction.DEFAULT.tombstoneDelay()).isEqualTo(Duration.ofHours(24));
    }

    @Test
    void tombstoneDelay_outOfRange_isRejected() {
        for (Duration delay : new Duration[] {null, Duration.ZERO, Duration.ofMillis(999), Duration.ofDays(36_501)}) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> new Compaction(delay))
                    .extracting(InvalidInputException::field)
                    .isEqualTo("compaction.tombstoneDelay");
        }
    }

    @Test
    void stream_keepsItsCompactionInCopies() {
        StreamSpec stream = StreamSpec.of("a").withCompaction(Compaction.DEFAULT);
        assertThat(stream.withPartitions(2)
                        .withSegmentSize(200)
                        .asJson()
                        .withRetention(Retention.FOREVER)
                        .compaction())
                .isEqualTo(Compaction.DEFAULT);
        assertThat(stream.withCompaction(null)).isEqualTo(StreamSpec.of("a"));
    }
}
