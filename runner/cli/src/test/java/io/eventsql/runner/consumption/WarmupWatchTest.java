package io.eventsql.runner.consumption;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.testing.ManualClock;
import io.eventsql.runner.testing.StubApp;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A warm-up of 10 to 60 seconds on a manual clock, against a stub app that keeps the barrier. */
class WarmupWatchTest {
    private static final long SECOND = 1_000_000_000;
    private static final String RUN = "ab12cd34";

    private final ManualClock clock = new ManualClock();
    private final ClockAnchor anchor = ClockAnchor.now(clock);
    private final List<String> problems = new ArrayList<>();
    private CompilationTime.Source compilation = compilingUntil(0);
    private boolean areOthersWarm = true;

    @Test
    void check_warmFromTheStart_endsAfterTheShortestTimeAtTheCommonTime() {
        try (StubApp app = startApp();
                AppClient client = new AppClient(app.uri());
                WarmupWatch watch = watch(client)) {
            assertThat(secondsUntilEndIsKnown(watch)).isEqualTo(10);

            assertThat(watch.endNanos()).as("the barrier's time").isEqualTo(clock.nanos() + SECOND);
            assertThat(app.requests)
                    .containsExactly("POST /benchmark-runs/" + RUN + "/barriers/warm?runner=0&runners=3");
            clock.advance(2 * SECOND);
            assertThat(watch.outcome()).isEqualTo(new WarmupWatch.Outcome(11, true, true, 0.0));
        }
        assertThat(problems).isEmpty();
    }

    @Test
    void check_compiling_continuesUntilTheWindowIsQuiet() {
        compilation = compilingUntil(25);

        try (StubApp app = startApp();
                AppClient client = new AppClient(app.uri());
                WarmupWatch watch = watch(client)) {
            // Half a second of compilation in five is what a warm JVM may have.
            assertThat(secondsUntilEndIsKnown(watch)).isEqualTo(29);
            assertThat(watch.outcome().warm()).isTrue();
        }
    }

    @Test
    void check_neverWarm_endsAfterTheLongestTimeAndSaysSo() {
        compilation = compilingUntil(1_000);

        try (StubApp app = startApp();
                AppClient client = new AppClient(app.uri());
                WarmupWatch watch = watch(client)) {
            assertThat(secondsUntilEndIsKnown(watch)).isEqualTo(60);
            assertThat(watch.outcome().warm()).isFalse();
            assertThat(watch.outcome().compilationMsPerSecond()).isEqualTo(500);
        }
        assertThat(problems).isEmpty();
    }

    @Test
    void check_othersNotWarm_keepsItsLoadUntilTheyAre() {
        areOthersWarm = false;

        try (StubApp app = startApp();
                AppClient client = new AppClient(app.uri());
                WarmupWatch watch = watch(client)) {
            for (int second = 1; second <= 40; second++) {
                clock.advance(SECOND);
                watch.check();
                assertThat(watch.endNanos()).as("second " + second).isEqualTo(Long.MAX_VALUE);
            }
            areOthersWarm = true;
            assertThat(secondsUntilEndIsKnown(watch)).isEqualTo(1);
        }
    }

    @Test
    void check_othersNeverWarm_endsAloneAndSaysSo() {
        areOthersWarm = false;

        try (StubApp app = startApp();
                AppClient client = new AppClient(app.uri());
                WarmupWatch watch = watch(client)) {
            assertThat(secondsUntilEndIsKnown(watch)).isEqualTo(60 + WarmupWatch.OTHERS_MAX.toSeconds());
        }
        assertThat(problems).containsExactly("The other runners were not warm in time");
    }

    @Test
    void check_appWithoutCompilationTime_takesTheLongestTimeAndSaysSoOnce() {
        compilation = () -> {
            throw new IOException("no answer");
        };

        try (StubApp app = startApp();
                AppClient client = new AppClient(app.uri());
                WarmupWatch watch = watch(client)) {
            assertThat(secondsUntilEndIsKnown(watch)).isEqualTo(60);
            assertThat(watch.outcome().warm()).isFalse();
            assertThat(watch.outcome().compilationMsPerSecond()).isNull();
        }
        assertThat(problems).containsExactly("The compilation time is unknown: no answer");
    }

    private WarmupWatch watch(AppClient client) {
        return new WarmupWatch(
                new WarmupWatch.Bounds(Duration.ofSeconds(10), Duration.ofSeconds(60)),
                compilation,
                new StartBarrier(client, RUN, 0, 3, clock),
                clock,
                anchor,
                problems::add);
    }

    /** Checks each second, as the timer does. */
    private long secondsUntilEndIsKnown(WarmupWatch watch) {
        for (long second = 1; second <= 1_000; second++) {
            clock.advance(SECOND);
            watch.check();
            if (watch.endNanos() != Long.MAX_VALUE) {
                return second;
            }
        }
        throw new AssertionError("The warm-up never ended");
    }

    /** Returns half a second of compilation each second, until a time in seconds after the start. */
    private CompilationTime.Source compilingUntil(long seconds) {
        LongUnaryOperator total = nanos -> Math.min(nanos / SECOND, seconds) * 250;
        return () -> {
            long time = total.applyAsLong(clock.nanos() - anchor.nanos());
            return new CompilationTime(time, time);
        };
    }

    private StubApp startApp() {
        return StubApp.start(request -> {
            Long startAtMicros = areOthersWarm ? (Long) (clock.epochMicros() + 1_000_000) : null;
            return barrier(startAtMicros);
        });
    }

    private StubApp.Answer barrier(@Nullable Long startAtMicros) {
        return new StubApp.Answer(
                200,
                "{\"arrived\":3,\"runners\":3,\"startAtMicros\":" + startAtMicros + ",\"nowMicros\":"
                        + clock.epochMicros() + "}");
    }
}
