package io.eventsql.runner.load;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SendScheduleTest {
    private static final long START = 123_456_789L;

    @ParameterizedTest
    @CsvSource({"7777, 1", "7777, 3", "1, 1", "3, 7", "5000, 1", "999983, 1", "1000000, 100", "13, 5000"})
    void nanosOf_anySlotUpToTenMillion_isExact(long rate, int batch) {
        SendSchedule schedule = new SendSchedule(START, rate, batch, 1_000_000_000_000L);

        for (long slot : new long[] {0, 1, 2, 7776, 7777, 7778, 999_999, 9_999_999, 10_000_000, 10_000_001}) {
            BigInteger exact = BigInteger.valueOf(slot)
                    .multiply(BigInteger.valueOf(batch))
                    .multiply(BigInteger.valueOf(1_000_000_000))
                    .divide(BigInteger.valueOf(rate));
            assertThat(schedule.nanosOf(slot) - START).as("slot %d", slot).isEqualTo(exact.longValueExact());
        }
    }

    @Test
    void nanosOf_tenMillionSlotsAtAnOddRate_neverDriftsFromWholeSeconds() {
        SendSchedule schedule = new SendSchedule(START, 7_777, 1, 100_000_000);

        for (long second = 0; second <= 10_000_000 / 7_777; second++) {
            assertThat(schedule.nanosOf(second * 7_777)).isEqualTo(START + second * 1_000_000_000);
        }
    }

    @Test
    void nanosOf_followingSlots_areApartByTheIntervalRoundedUpOrDown() {
        SendSchedule schedule = new SendSchedule(START, 7_777, 1, 100_000_000);

        for (long slot = 9_990_000; slot < 10_000_000; slot++) {
            assertThat(schedule.nanosOf(slot + 1) - schedule.nanosOf(slot)).isBetween(128_584L, 128_585L);
        }
    }

    @Test
    void nanosOf_theLastPossibleEvent_doesNotOverflow() {
        SendSchedule schedule = new SendSchedule(0, 1_000_000, 1, 1_000_000_000_000L);

        assertThat(schedule.nanosOf(999_999_999_999L)).isEqualTo(999_999_999_999_000L);
    }

    @Test
    void eventsIn_lastSlot_holdsTheRest() {
        SendSchedule schedule = new SendSchedule(START, 100, 30, 100);

        assertThat(schedule.slots()).isEqualTo(4);
        assertThat(schedule.eventsIn(0)).isEqualTo(30);
        assertThat(schedule.eventsIn(3)).isEqualTo(10);
        assertThat(schedule.firstEvent(3)).isEqualTo(90);
    }
}
