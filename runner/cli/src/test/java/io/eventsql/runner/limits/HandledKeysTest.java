package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class HandledKeysTest {
    private final HandledKeys handled = new HandledKeys();

    @Test
    void result_keysTakeTurns_isInOrder() {
        handled.begins("a", 0, 1_000_000_000);
        handled.begins("b", 1, 1_000_000_000);
        handled.ends("b", 1_500_000_000);
        handled.begins("b", 3, 1_500_000_000);
        handled.ends("a", 2_000_000_000);
        assertThat(handled.isDone(3)).as("one is still being handled").isFalse();
        handled.ends("b", 2_000_000_000);

        assertThat(handled.isDone(3)).isTrue();
        assertThat(handled.isDone(4)).isFalse();
        HandlersResult.OfConcurrency result = handled.result(2, 4);
        assertThat(result.eventsPerSecond()).isEqualTo(3);
        assertThat(result.eventsLost()).isEqualTo(1);
        assertThat(result.eventsDuplicated()).isZero();
        assertThat(result.orderViolations()).isZero();
    }

    @Test
    void begins_whileAnEarlierOneOfTheKeyRuns_isAViolation() {
        handled.begins("a", 0, 0);
        handled.begins("a", 1, 0);

        assertThat(handled.result(2, 2).orderViolations()).isEqualTo(1);
    }

    @Test
    void begins_afterALaterOneOfTheKey_isAViolation() {
        handle("a", 1);
        handle("a", 0);

        assertThat(handled.result(2, 2).orderViolations()).isEqualTo(1);
    }

    @Test
    void begins_again_isADuplicateAndHidesNoLoss() {
        handle("a", 0);
        handle("a", 2);
        handle("a", 0);

        assertThat(handled.isDone(3)).isFalse();
        HandlersResult.OfConcurrency result = handled.result(2, 3);
        assertThat(result.eventsLost()).isEqualTo(1);
        assertThat(result.eventsDuplicated()).isEqualTo(1);
        assertThat(result.orderViolations()).isZero();
    }

    @Test
    void result_nothingHandled_isAllLost() {
        assertThat(handled.result(1, 5)).isEqualTo(new HandlersResult.OfConcurrency(1, 5, 0, 5, 0, 0));
    }

    private void handle(String key, long number) {
        handled.begins(key, number, 0);
        handled.ends(key, 0);
    }
}
