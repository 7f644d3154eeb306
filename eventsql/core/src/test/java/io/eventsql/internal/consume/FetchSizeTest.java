package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FetchSizeTest {
    private static final int PAGE = 10;
    private static final long MANY = Long.MAX_VALUE;

    private final FetchSize size = new FetchSize(PAGE, 0);
    private long now = System.nanoTime();

    private long after(long micros) {
        now += TimeUnit.MICROSECONDS.toNanos(micros);
        return now;
    }

    @Test
    void events_nothingIsHandled_isAPage() {
        assertThat(size.events(0, now, MANY)).isEqualTo(PAGE);
        size.beginHandling(now);
        assertThat(size.events(0, after(1), MANY)).isEqualTo(PAGE);
    }

    @ParameterizedTest
    @CsvSource({"1, 1000", "99, 1000", "300, 160", "2000, 40", "3000, 10", "10000, 10", "1000000, 10"})
    void events_handlerTakesMicrosForAnEvent_areThoseOfATenthOfASecond(long micros, int expected) {
        size.beginHandling(now);
        int events = 0;
        for (int fetch = 1; fetch <= 100; fetch++) {
            events = size.events(fetch * 100, after(micros * 100), MANY);
            size.beginFetch();
        }
        assertThat(events).isEqualTo(expected);
    }

    @Test
    void events_fetchesTakeLong_areNotFewer() {
        for (int fetch = 1; fetch <= 10; fetch++) {
            size.beginHandling(now);
            size.endHandling(fetch * PAGE, after(100));
            after(50_000); // the fetch, while the handler has nothing
            assertThat(size.events(fetch * PAGE, now, MANY)).isEqualTo(1_000);
            size.beginFetch();
        }
    }

    @Test
    void events_handlerBecomesSlow_areAPageAfterFewFetches() {
        size.beginHandling(now);
        size.events(1_000, after(1_000), MANY);
        size.beginFetch();
        int handled = 1_000;
        int events = 0;
        for (int fetch = 0; fetch < 10; fetch++) {
            handled += PAGE;
            events = size.events(handled, after(1_000_000), MANY);
            size.beginFetch();
        }
        assertThat(events).isEqualTo(PAGE);
    }

    @Test
    void events_handlerIsStuck_areAPage() {
        size.beginHandling(now);
        assertThat(size.events(1_000, after(1_000), MANY)).isEqualTo(1_000);

        assertThat(size.events(1_000, after(60_000_000), MANY)).isEqualTo(PAGE);
    }

    @Test
    void events_littleMemory_isThatOfItButAtLeastAPage() {
        size.beginHandling(now);
        size.endHandling(1_000, after(1_000));

        assertThat(size.events(1_000, now, 200)).isEqualTo(160);
        assertThat(size.events(1_000, now, 1)).isEqualTo(PAGE);
    }

    @Test
    void events_pageIsLarge_isThatPage() {
        FetchSize large = new FetchSize(5_000, 0);
        large.beginHandling(now);
        large.endHandling(100_000, after(1_000));

        assertThat(large.events(100_000, now, MANY)).isEqualTo(5_000);
    }

    @Test
    void events_manyFetchesWithoutEvents_isAPage() {
        size.beginHandling(now);
        size.endHandling(1_000, after(1_000));
        for (int fetch = 0; fetch < 2_000; fetch++) {
            size.beginFetch();
        }
        assertThat(size.events(1_000, now, MANY)).isEqualTo(PAGE);
    }
}
