package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.result.PartRecorder;
import java.util.List;
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
        assertThat(handled.handledOnce()).as("one is still being handled").isEqualTo(2);
        handled.recordEnd("b", 2_000_000_000);

        assertThat(handled.handledOnce()).isEqualTo(3);
        assertThat(problems(4)).containsExactly("1 events were not handled run");
        assertThat(handled.addTo(new PartRecorder("handlers", ""), "run", 4)).isEqualTo(3);
    }

    @Test
    void recordStart_whileAnEarlierOneOfTheKeyRuns_isAViolation() {
        handled.recordStart("a", 0, 0);
        handled.recordStart("a", 1, 0);

        assertThat(problems(2)).containsExactly("1 events were handled out of order run");
    }

    @Test
    void recordStart_afterALaterOneOfTheKey_isAViolation() {
        handle("a", 1);
        handle("a", 0);

        assertThat(problems(2)).containsExactly("1 events were handled out of order run");
    }

    @Test
    void recordStart_again_isADuplicateAndHidesNoLoss() {
        handle("a", 0);
        handle("a", 2);
        handle("a", 0);

        assertThat(handled.handledOnce()).isEqualTo(2);
        assertThat(problems(3))
                .containsExactly("1 events were not handled run", "1 events were handled more than once run");
    }

    @Test
    void result_nothingHandled_isAllLost() {
        assertThat(problems(5)).containsExactly("5 events were not handled run");
    }

    private List<String> problems(int events) {
        PartRecorder part = new PartRecorder("handlers", "");
        handled.addTo(part, "run", events);
        return part.part().problems();
    }

    private void handle(String key, long number) {
        handled.recordStart(key, number, 0);
        handled.recordEnd(key, 0);
    }
}
