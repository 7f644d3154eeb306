package io.eventsql.spring.internal.observation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.EventSqlException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** When a reading is shown, with a clock and with threads that the tests advance. */
class ReadingsTest {
    private static final Duration INTERVAL = Duration.ofSeconds(10);

    private final AtomicLong now = new AtomicLong(17);
    private final AtomicLong database = new AtomicLong(1);
    private final AtomicBoolean unavailable = new AtomicBoolean();
    private final Deque<Runnable> started = new ArrayDeque<>();
    private final Readings<Long> readings = new Readings<>("test", INTERVAL, this::read, now::get, started::add);

    private Long read() {
        if (unavailable.get()) {
            throw new EventSqlException("thrown by the test");
        }
        return database.get();
    }

    private double value() {
        return readings.get(Long::doubleValue);
    }

    private void pass(Duration time) {
        now.addAndGet(time.toNanos());
    }

    /** Lets the read in progress, which is the only one, end. */
    private void endRead() {
        assertThat(started).hasSize(1);
        started.remove().run();
    }

    @Test
    void get_beforeTheFirstReadHasEnded_isNoNumber() {
        assertThat(value()).isNaN();
        assertThat(value()).isNaN();
        endRead();
        assertThat(value()).isEqualTo(1);
        assertThat(started).isEmpty();
    }

    @Test
    void get_longAfterThePreviousOne_returnsTheReadingOfThat() {
        assertThat(value()).isNaN();
        endRead();

        for (int scrape = 2; scrape < 5; scrape++) {
            database.set(scrape);
            pass(Duration.ofSeconds(60));
            assertThat(value()).isEqualTo(scrape - 1);
            endRead();
        }
    }

    @Test
    void get_readInProgressForMoreThanFourIntervals_isNoNumberUntilItEnds() {
        assertThat(value()).isNaN();
        endRead();
        pass(Duration.ofSeconds(60));
        database.set(2);
        assertThat(value()).isEqualTo(1);

        pass(Duration.ofSeconds(40));
        assertThat(value()).isEqualTo(1);
        pass(Duration.ofSeconds(1));
        assertThat(value()).isNaN();

        endRead();
        assertThat(started).as("concurrent reads").isEmpty();
        assertThat(value()).isEqualTo(2);
    }

    @Test
    void get_afterAReadThatFailed_isNoNumberUntilOneSucceeds() {
        assertThat(value()).isNaN();
        endRead();
        unavailable.set(true);
        pass(INTERVAL);
        assertThat(value()).isEqualTo(1);
        endRead();
        assertThat(value()).isNaN();

        unavailable.set(false);
        pass(INTERVAL);
        assertThat(value()).isNaN();
        endRead();
        assertThat(value()).isEqualTo(1);
    }

    @Test
    void get_readingOlderThanTenMinutes_isNoNumber() {
        assertThat(value()).isNaN();
        endRead();

        pass(Duration.ofMinutes(10));
        assertThat(value()).isEqualTo(1);
        endRead();
        pass(Duration.ofMinutes(10).plusNanos(1));
        assertThat(value()).isNaN();
    }

    @Test
    void get_threadCannotBeStarted_startsItAtTheNext() {
        AtomicBoolean withoutMemory = new AtomicBoolean(true);
        Readings<Long> later = new Readings<>("test", INTERVAL, this::read, now::get, read -> {
            if (withoutMemory.getAndSet(false)) {
                throw new OutOfMemoryError("thrown by the test");
            }
            read.run();
        });

        assertThatExceptionOfType(OutOfMemoryError.class).isThrownBy(() -> later.get(Long::doubleValue));
        assertThat(later.get(Long::doubleValue)).isEqualTo(1);
    }
}
