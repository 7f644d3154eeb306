package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.ConsumerPosition;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.consumption.AppClient;
import io.eventsql.runner.consumption.AppConsumption;
import io.eventsql.runner.consumption.CompilationTime;
import io.eventsql.runner.consumption.RebalanceWait;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.consumption.WarmupWatch;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.phases.ProgressDisplay;
import io.eventsql.runner.spec.RunSettings;
import io.eventsql.runner.testing.ManualClock;
import io.eventsql.runner.testing.StubApp;
import io.eventsql.runner.testing.SyntheticService;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** All steps of a run on a manual clock, against a synthetic service and a stub app. */
class MainJobRunTest {
    private static final String BARRIER = "POST /benchmark-runs/ab12cd34/barriers/measured?runner=0&runners=3";
    private static final long START_AFTER_MICROS = 60_000_000;
    private static final long APP_AHEAD_MICROS = 3_000;

    private final ManualClock clock = new ManualClock();
    private final StopSignal stop = new StopSignal();
    private final SyntheticService service = new SyntheticService(clock, call -> 2_000_000);
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private StartBarrier barrier;

    @Test
    void run_executesAllStepsInOrder() throws IOException {
        AtomicInteger polls = new AtomicInteger();
        MainJobRun.Outcome outcome;
        long startAt = ManualClock.START_EPOCH_MICROS + START_AFTER_MICROS;
        try (StubApp app =
                StubApp.start(request -> polls.incrementAndGet() < 4 ? atBarrier(1, null) : atBarrier(3, startAt))) {
            outcome = run(app, () -> List.of(position(service.calls.size(), service.calls.size())));
            // Four requests until the start time is known, then more to compare the clocks.
            assertThat(app.requests).hasSize(9).allMatch(BARRIER::equals);
        }
        assertThat(barrier.appClock()).isEqualTo(new StartBarrier.ClockOffset(APP_AHEAD_MICROS / 1_000.0, 0));

        assertThat(outcome.warmup().publishedEvents()).isEqualTo(200);
        assertThat(outcome.measured().publishedEvents()).isEqualTo(1_000);
        assertThat(outcome.warmth()).isEqualTo(WarmupWatch.Outcome.fixed(2));
        assertThat(outcome.measuredCompilation()).isEqualTo(new CompilationTime(1_000, 0));
        assertThat(outcome.ending().consumed()).isTrue();
        assertThat(outcome.ending().timedOut()).isFalse();
        assertThat(outcome.measured().firstIntendedAtMicros())
                .isEqualTo(ManualClock.START_EPOCH_MICROS + START_AFTER_MICROS);
        assertThat(service.calls)
                .extracting(
                        call -> BenchmarkEvent.decode(call.events().getFirst().value()))
                .satisfies(events -> {
                    assertThat(events.subList(0, 200)).allMatch(BenchmarkEvent::warmup);
                    assertThat(events.get(199).number()).isEqualTo(199);
                    assertThat(events.subList(200, 1_200)).noneMatch(BenchmarkEvent::warmup);
                    assertThat(events.get(200).number()).isZero();
                });
        assertThat(out.toString(StandardCharsets.UTF_8))
                .containsSubsequence(
                        "Warmed up with 200 events",
                        "Publishing 1000 events with 100 per second rate took: PT9.992S, which means 100 per second rate",
                        "3 runner instances were running in parallel, so the real rate was 300 per second for 3000 events",
                        "Waiting for consumption....",
                        "Consuming 1000 events with 100 per second rate took: PT10.012S");
    }

    @Test
    void run_nothingIsConsumed_timesOut() throws IOException {
        StubApp.Answer started = atBarrier(3, ManualClock.START_EPOCH_MICROS);

        try (StubApp app = StubApp.start(request -> started)) {
            MainJobRun.Outcome outcome =
                    run(app, () -> List.of(position(Math.min(200, service.calls.size()), service.calls.size())));

            assertThat(outcome.ending().timedOut()).isTrue();
            assertThat(outcome.ending().consumed()).isFalse();
            assertThat(outcome.measured().publishedEvents()).isEqualTo(1_000);
        }
        assertThat(out.toString(StandardCharsets.UTF_8))
                .contains("Consumer of 0 partition is at the event 200, but latest event is 1200; waiting for 1s...");
    }

    @Test
    void run_interruptedInTheWarmup_skipsTheRest() throws IOException {
        clock.whenParked(() -> {
            if (service.calls.size() == 50) {
                stop.raise(StopSignal.Reason.INTERRUPTED);
            }
        });

        try (StubApp app = StubApp.start(request -> new StubApp.Answer(500, ""))) {
            MainJobRun.Outcome outcome = run(app, () -> List.of(position(49, 50)));

            assertThat(outcome.warmup().sentEvents()).isEqualTo(50);
            assertThat(outcome.measured().sentEvents()).isZero();
            assertThat(outcome.ending().interrupted()).isTrue();
            assertThat(outcome.ending().timedOut()).isFalse();
            assertThat(app.requests).isEmpty();
        }
    }

    @Test
    void run_interruptedWhilePublishing_waitsBrieflyForEventsInTransit() throws IOException {
        StubApp.Answer started = atBarrier(3, ManualClock.START_EPOCH_MICROS);
        AtomicInteger looks = new AtomicInteger();
        Supplier<List<ConsumerPosition>> positions = () -> {
            if (service.calls.size() < 700) {
                return List.of(position(service.calls.size(), service.calls.size()));
            }
            return List.of(position(looks.incrementAndGet() < 20 ? 699 : 700, 700));
        };
        service.whenCalled(call -> {
            if (call == 699) {
                stop.raise(StopSignal.Reason.INTERRUPTED);
            }
        });

        try (StubApp app = StubApp.start(request -> started)) {
            MainJobRun.Outcome outcome = run(app, positions);

            assertThat(outcome.measured().publishedEvents()).isEqualTo(500);
            assertThat(outcome.ending().interrupted()).isTrue();
            assertThat(outcome.ending().consumed()).isTrue();
            assertThat(outcome.ending().succeeded()).isFalse();
        }
        assertThat(looks).hasValue(20);
    }

    @Test
    void run_othersNeverArrive_failsWithTheNumberOfArrivals() {
        StubApp.Answer waiting = atBarrier(2, null);

        try (StubApp app = StubApp.start(request -> waiting)) {
            assertThatThrownBy(() -> run(app, () -> List.of(position(0, 0))))
                    .isInstanceOf(IOException.class)
                    .hasMessage("Only 2 of 3 runners were ready to start within 70 s");
        }
    }

    private MainJobRun.Outcome run(StubApp app, Supplier<List<ConsumerPosition>> positions) throws IOException {
        RunSettings settings = new RunSettings(
                new RunSettings.Identity("ab12cd34", 0, 3),
                new RunSettings.Stream("account_created", 10, "app", 10),
                new RunSettings.Load(100, 1_000, 1, 50, false, 2, 0),
                new RunSettings.Events(null, false, 1_000));
        try (AppClient client = new AppClient(app.uri())) {
            barrier = new StartBarrier(client, "ab12cd34", 0, 3, clock);
            PrintStream text = new PrintStream(out, true, StandardCharsets.UTF_8);
            ProgressDisplay progress = ProgressDisplay.lines(text, clock);
            LoadSession session = LoadSession.ofStream(
                    "account_created",
                    service,
                    new AppConsumption(positions, clock, text::println),
                    new LoadSession.Publisher("ab12cd34", 0),
                    new LoadSession.Context(MainJobRun.spec(settings), clock, stop, new Problems(), progress));
            MainJobRun.RunContext context = new MainJobRun.RunContext(
                    session,
                    new RebalanceWait(List::of, 1, clock, text::println),
                    barrier,
                    () -> new CompilationTime(service.calls.size(), 0),
                    () -> OptionalLong.of(ManualClock.START_EPOCH_MICROS + START_AFTER_MICROS + 10_012_000),
                    clock,
                    stop);
            return new MainJobRun(settings, context, text, progress).run();
        }
    }

    /** Returns the response of an app whose clock is ahead of the runner's. */
    private StubApp.Answer atBarrier(int arrived, @Nullable Long startAtMicros) {
        return new StubApp.Answer(
                200,
                "{\"arrived\":" + arrived + ",\"runners\":3,\"startAtMicros\":" + startAtMicros + ",\"nowMicros\":"
                        + (clock.epochMicros() + APP_AHEAD_MICROS) + "}");
    }

    private static ConsumerPosition position(long next, long head) {
        return new ConsumerPosition(0, 0, next, head, 0, 1);
    }
}
