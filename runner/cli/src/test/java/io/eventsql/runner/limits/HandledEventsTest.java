package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class HandledEventsTest {
    private final HandledEvents handled = new HandledEvents();

    @Test
    void result_interleavedKeys_isInOrder() {
        handled.recordStart("a", 0, 1_000_000_000);
        handled.recordStart("b", 1, 1_000_000_000);
        handled.recordEnd("b", 1_500_000_000);
        handled.recordStart("b", 3, 1_500_000_000);
        handled.recordEnd("a", 2_000_000_000);
        assertThat(handled.isDone(3)).as("one is still being handled").isFalse();
        handled.recordEnd("b", 2_000_000_000);

        assertThat(handled.isDone(3)).isTrue();
        assertThat(handled.isDone(4)).isFalse();
        HandlersResult.HandlerRun result = handled.result(2, 4);
        assertThat(result.eventsPerSecond()).isEqualTo(3);
        assertThat(result.eventsLost()).isEqualTo(1);
        assertThat(result.eventsDuplicated()).isZero();
        assertThat(result.orderViolations()).isZero();
    }

    @Test
    void recordStart_whileAnEarlierOneOfTheKeyRuns_isAViolation() {
        handled.recordStart("a", 0, 0);
        handled.recordStart("a", 1, 0);

        assertThat(handled.result(2, 2).orderViolations()).isEqualTo(1);
    }

    @Test
    void recordStart_afterALaterOneOfTheKey_isAViolation() {
        handle("a", 1);
        handle("a", 0);

        assertThat(handled.result(2, 2).orderViolations()).isEqualTo(1);
    }

    @Test
    void recordStart_again_isADuplicateAndHidesNoLoss() {
        handle("a", 0);
        handle("a", 2);
        handle("a", 0);

        assertThat(handled.isDone(3)).isFalse();
        HandlersResult.HandlerRun result = handled.result(2, 3);
        assertThat(result.eventsLost()).isEqualTo(1);
        assertThat(result.eventsDuplicated()).isEqualTo(1);
        assertThat(result.orderViolations()).isZero();
    }

    @Test
    void result_nothingHandled_isAllLost() {
        assertThat(handled.result(1, 5)).isEqualTo(new HandlersResult.HandlerRun(1, 5, 0, 5, 0, 0));
    }

    private void handle(String key, long number) {
        handled.recordStart(key, number, 0);
        handled.recordEnd(key, 0);
    }
}
