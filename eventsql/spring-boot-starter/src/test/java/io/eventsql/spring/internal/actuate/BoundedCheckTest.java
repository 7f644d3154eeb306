package io.eventsql.spring.internal.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** A check whose thread cannot be started. */
class BoundedCheckTest {
    @Test
    void start_threadCannotBeStarted_startsItAtTheNextCall() throws Exception {
        AtomicBoolean withoutMemory = new AtomicBoolean(true);
        BoundedCheck<String> check = new BoundedCheck<>(() -> "valid", run -> {
            if (withoutMemory.getAndSet(false)) {
                throw new OutOfMemoryError("thrown by the test");
            }
            run.run();
        });

        assertThatExceptionOfType(OutOfMemoryError.class).isThrownBy(check::start);
        assertThat(check.start().await(BoundedCheck.deadline(Duration.ZERO))).isEqualTo("valid");
    }
}
