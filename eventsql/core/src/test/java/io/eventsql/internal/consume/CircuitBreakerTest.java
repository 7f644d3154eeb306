package io.eventsql.internal.consume;

import static io.eventsql.internal.consume.Fixtures.event;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.RetryPolicy;
import io.eventsql.internal.consume.CircuitBreaker.Admission;
import io.eventsql.internal.consume.CircuitBreaker.Pause;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class CircuitBreakerTest {
    private static final Duration MS = Duration.ofMillis(1);
    private static final RetryPolicy RETRY = RetryPolicy.defaults().withDelay(MS, MS);

    private final AtomicLong nanos = new AtomicLong();
    private final CircuitBreaker circuit = new CircuitBreaker(3, RETRY, nanos::get);
    private int offset;

    /** An event of this key fails for good. */
    private Optional<Pause> fail(@Nullable String key) {
        return circuit.recordFailure(event(offset++, key), circuit.admit(), true);
    }

    private void open() {
        fail("a");
        fail("b");
        assertThat(fail("a")).isPresent();
        assertThat(circuit.isOpen()).isTrue();
    }

    /** Lets the time of the pause pass; returns the admission of the one call. */
    private Admission passPause() {
        nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(circuit.admit().waitMs()));
        return circuit.admit();
    }

    @Test
    void recordFailure_severalKeysInARow_opens() {
        assertThat(fail("a")).isEmpty();
        assertThat(fail("b")).isEmpty();
        assertThat(circuit.admit()).isEqualTo(new Admission(0, false));

        Pause pause = fail("c").orElseThrow();

        assertThat(pause.failures()).isEqualTo(3);
        assertThat(pause.isFirst()).isTrue();
        assertThat(pause.delay()).isBetween(Duration.ofMillis(500), Duration.ofSeconds(1));
        assertThat(circuit.admit().waitMs()).isBetween(1L, 1_001L);
    }

    @Test
    void recordFailure_oneKey_staysClosed() {
        for (int i = 0; i < 100; i++) {
            assertThat(fail("a")).isEmpty();
        }
        assertThat(fail("b")).as("another key").isPresent();
    }

    @Test
    void recordFailure_noKeys_opens() {
        fail(null);
        fail(null);
        assertThat(fail(null)).isPresent();
    }

    @Test
    void recordFailure_successInBetween_staysClosed() {
        for (int i = 0; i < 10; i++) {
            fail("a");
            fail("b");
            assertThat(circuit.recordSuccess()).as("was closed").isFalse();
        }
        assertThat(circuit.isOpen()).isFalse();
    }

    @Test
    void recordFailure_notForGood_doesNotCount() {
        for (int i = 0; i < 10; i++) {
            assertThat(circuit.recordFailure(event(i, "k" + i), circuit.admit(), false))
                    .isEmpty();
        }
        assertThat(circuit.isOpen()).isFalse();
    }

    @Test
    void recordFailure_limitZero_neverOpens() {
        CircuitBreaker off = new CircuitBreaker(0, RETRY);
        for (int i = 0; i < 100; i++) {
            assertThat(off.recordFailure(event(i, "k" + i), off.admit(), true)).isEmpty();
        }
        assertThat(off.isOpen()).isFalse();
    }

    @Test
    void admit_pauseOver_admitsOneCall() {
        open();

        Admission alone = passPause();

        assertThat(alone.isAlone()).isTrue();
        assertThat(circuit.admit().waitMs()).as("another lane").isPositive();
        assertThat(circuit.recordSuccess()).isTrue();
        assertThat(circuit.admit()).isEqualTo(new Admission(0, false));
    }

    @Test
    void recordFailure_halfOpen_pausesForTwiceAsLong() {
        open();

        Pause second = circuit.recordFailure(event(9, "z"), passPause(), false).orElseThrow();

        assertThat(second.isFirst()).isFalse();
        assertThat(second.delay()).isBetween(Duration.ofSeconds(1), Duration.ofSeconds(2));
        assertThat(second.failures()).isEqualTo(4);
    }

    @Test
    void recordFailure_callBegunBeforeItOpened_changesNothing() {
        Admission before = circuit.admit();
        open();
        assertThat(circuit.recordFailure(event(9, "z"), before, true)).isEmpty();
        assertThat(circuit.isOpen()).isTrue();
    }

    @Test
    void recordSuccess_callBegunBeforeItOpened_closes() {
        open();
        assertThat(circuit.recordSuccess()).isTrue();
        assertThat(circuit.isOpen()).isFalse();
    }

    @Test
    void recordNoResult_halfOpen_admitsTheNextCall() {
        open();
        circuit.recordNoResult(passPause());
        assertThat(circuit.isOpen()).isTrue();
        assertThat(circuit.admit().isAlone()).isTrue();
    }

    @Test
    void pause_longRetryDelay_isAtLeastThat() {
        Duration hour = Duration.ofHours(1);
        CircuitBreaker slow = new CircuitBreaker(1, RetryPolicy.defaults().withDelay(hour, hour));
        assertThat(slow.recordFailure(event(0, "a"), slow.admit(), true)
                        .orElseThrow()
                        .delay())
                .isBetween(Duration.ofMinutes(30), hour);
    }
}
