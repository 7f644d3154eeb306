package io.eventsql.spring.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Listeners and EventSql share one timeout. */
class ShutdownBudgetTest {
    private final AtomicLong now = new AtomicLong(17);
    private final ShutdownBudget budget = new ShutdownBudget(Duration.ofSeconds(25), now::get);

    private void pass(int seconds) {
        now.addAndGet(Duration.ofSeconds(seconds).toNanos());
    }

    @Test
    void listeners_mayTakeEverything_eventSqlGetsTheRest() {
        assertThat(budget.beginStop()).isEqualTo(Duration.ofSeconds(25));
        pass(20);
        budget.endStop();
        pass(100); // other phases
        assertThat(budget.remaining()).isEqualTo(Duration.ofSeconds(5));
    }

    @Test
    void listeners_stoppedAtOnce_leaveEverything() {
        budget.beginStop();
        budget.endStop();
        assertThat(budget.remaining()).isEqualTo(Duration.ofSeconds(25));
    }

    @Test
    void listeners_stillStopping_countUntilNow() {
        budget.beginStop();
        pass(24);
        assertThat(budget.remaining()).isEqualTo(Duration.ofSeconds(1));
        pass(24);
        assertThat(budget.remaining()).isZero();
    }

    @Test
    void listeners_startedAgain_haveTheWholeTimeAgain() {
        budget.beginStop();
        pass(20);
        budget.endStop();
        budget.reset();
        assertThat(budget.beginStop()).isEqualTo(Duration.ofSeconds(25));
    }
}
