package io.eventsql.runner.load;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.testing.ManualClock;
import io.eventsql.runner.testing.SyntheticService;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OpenLoopTest {
    private static final long MILLIS = 1_000_000;

    private final ManualClock clock = new ManualClock();
    private final StopSignal stop = new StopSignal();
    private final PublishMeter meter = new PublishMeter();

    @Test
    void run_knownServiceTimes_areTheLatencies() {
        // 99 of 100 calls take 2 ms, one takes 40 ms.
        SyntheticService service = service(call -> call % 100 == 50 ? 40 * MILLIS : 2 * MILLIS);

        PhaseMeasurement measured = run(service, 1_000, 1, 10_000);

        assertThat(measured.sentEvents()).isEqualTo(10_000);
        assertThat(measured.publishedEvents()).isEqualTo(10_000);
        assertThat(measured.latencyMicros().getTotalCount()).isEqualTo(10_000);
        assertThat(measured.latencyMicros().getValueAtPercentile(98.9)).isBetween(2_000L, 2_003L);
        assertThat(measured.latencyMicros().getValueAtPercentile(99.5)).isBetween(40_000L, 40_040L);
        assertThat(measured.latencyMicros().getCountBetweenValues(39_960, 40_040))
                .isEqualTo(100);
        assertThat(measured.scheduleDelayMicros().getTotalCount()).isEqualTo(10_000);
        assertThat(measured.scheduleDelayMicros().getMaxValue()).isZero();
    }

    @Test
    void run_callsHappenAtTheirIntendedTimes() {
        SyntheticService service = service(call -> MILLIS);

        run(service, 777, 1, 2_000);

        SendSchedule schedule = new SendSchedule(ManualClock.START_NANOS, 777, 1, 2_000);
        for (int call = 0; call < 2_000; call++) {
            assertThat(service.calls.get(call).atNanos()).isEqualTo(schedule.nanosOf(call));
        }
    }

    @Test
    void run_slotsCloserThanTheShortestWait_areSentTogetherAndTheDelayShows() {
        SyntheticService service = service(call -> MILLIS);

        PhaseMeasurement measured = run(service, 100_000, 1, 100_000);

        assertThat(measured.publishedEvents()).isEqualTo(100_000);
        assertThat(measured.scheduleDelayMicros().getMaxValue()).isBetween(200L, 250L);
        assertThat(measured.latencyMicros().getMinValue()).isGreaterThanOrEqualTo(1_000);
        assertThat(measured.latencyMicros().getMaxValue()).isBetween(1_200L, 1_251L);
    }

    @Test
    void run_targetThatBlocks_delaysCallsButLatencyCountsFromTheIntendedTime() {
        // Call 10 blocks its caller for 500 ms, so that the next 50 slots are late.
        PublishTarget blocking = blocking(service(call -> MILLIS), 10, 500);

        PhaseMeasurement measured = run(blocking, 100, 1, 100);

        assertThat(measured.publishedEvents()).isEqualTo(100);
        assertThat(measured.scheduleDelayMicros().getMaxValue()).isBetween(489_000L, 490_500L);
        assertThat(measured.scheduleDelayMicros().getCountBetweenValues(1_000, 600_000))
                .as("calls 11 to 59")
                .isEqualTo(49);
        assertThat(measured.latencyMicros().getMaxValue()).isBetween(501_000L, 501_500L);
        assertThat(measured.latencyMicros().getCountBetweenValues(2_000, 600_000))
                .as("calls 10 to 59")
                .isEqualTo(50);
    }

    @ParameterizedTest
    @CsvSource({"510, 100", "700, 51"})
    void run_targetThatBlocksBeyondTheEnd_missesLateSlots(long blockedMs, long sentEvents) {
        // Call 50 of 100 is made at 500 ms and blocks its caller until the end of the second.
        SyntheticService service = service(call -> MILLIS);
        PublishTarget blocking = blocking(service, 50, blockedMs);
        LoadPhase second = LoadPhase.ofNanos(false, ClockAnchor.now(clock), clock.nanos(), 1_000 * MILLIS);

        assertThat(new OpenLoop(context(blocking, 1), 100, 1_000).run(second, meter))
                .isEqualTo(sentEvents);
    }

    @Test
    void run_batches_carryRisingNumbersAndTheirIntendedTime() {
        SyntheticService service = service(call -> MILLIS);

        PhaseMeasurement measured = run(service, 1_000, 30, 100);

        assertThat(service.calls).extracting(call -> call.events().size()).containsExactly(30, 30, 30, 10);
        assertThat(measured.latencyMicros().getTotalCount()).isEqualTo(100);
        List<BenchmarkEvent> sent = service.calls.stream()
                .flatMap(call -> call.events().stream())
                .map(event -> BenchmarkEvent.decode(event.value()))
                .toList();
        for (int i = 0; i < 100; i++) {
            assertThat(sent.get(i).number()).isEqualTo(i);
            assertThat(sent.get(i).warmup()).isFalse();
            assertThat(sent.get(i).intendedAtMicros()).isEqualTo(ManualClock.START_EPOCH_MICROS + i / 30 * 30_000);
        }
        assertThat(measured.firstIntendedAtMicros()).isEqualTo(ManualClock.START_EPOCH_MICROS);
        assertThat(measured.lastAcknowledgedAtMicros()).isEqualTo(ManualClock.START_EPOCH_MICROS + 91_000);
    }

    @Test
    void run_stopSignal_endsImmediatelyAndKeepsAnsweredEvents() {
        SyntheticService service = service(call -> {
            if (call == 41) {
                stop.raise(StopSignal.Reason.INTERRUPTED);
            }
            return MILLIS;
        });

        PhaseMeasurement measured = run(service, 1_000, 1, 10_000);

        assertThat(measured.sentEvents()).isEqualTo(42);
        assertThat(measured.publishedEvents()).isEqualTo(42);
    }

    @Test
    void run_failures_areCountedByClassWithTheirFirstMessage() {
        PublishTarget failing = new PublishTarget() {
            private int calls;

            @Override
            public void publish(List<Event> events) {
                throw new UnsupportedOperationException();
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                int call = calls++;
                if (call % 10 == 3) {
                    return CompletableFuture.failedFuture(new IllegalStateException("failed " + call));
                }
                if (call % 10 == 4) {
                    throw new IllegalArgumentException("refused " + call);
                }
                return CompletableFuture.completedFuture(null);
            }
        };

        PhaseMeasurement measured = run(failing, 1_000, 2, 200);

        assertThat(measured.publishedEvents()).isEqualTo(160);
        assertThat(measured.failedEvents()).isEqualTo(40);
        assertThat(measured.errors())
                .extracting(error -> error.errorClass() + " " + error.events() + " " + error.firstMessage())
                .containsExactly(
                        "java.lang.IllegalArgumentException 20 refused 4",
                        "java.lang.IllegalStateException 20 failed 3");
    }

    @Test
    void run_targetThatNeverAnswers_timesOut() {
        PublishTarget silent = new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                throw new UnsupportedOperationException();
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                return new CompletableFuture<>();
            }
        };

        PhaseMeasurement measured = run(silent, 1_000, 1, 5);

        assertThat(measured.publishedEvents()).isZero();
        assertThat(measured.errors())
                .extracting(error -> error.errorClass() + " " + error.events())
                .containsExactly(UnansweredException.class.getName() + " 5");
        assertThat(clock.nanos() - ManualClock.START_NANOS).isGreaterThan(UnansweredCalls.TIMEOUT_NANOS);
    }

    @Test
    void run_keys_areUsedInRotation() {
        SyntheticService service = service(call -> MILLIS);
        LoadContext context =
                new LoadContext(new EventSource("ab12cd34", 2, 0, KeyShare.keysOf(2, 3)), service, 1, clock, stop);

        new OpenLoop(context, 1_000).run(phase(7), meter);

        assertThat(service.calls)
                .extracting(call -> call.events().getFirst().key())
                .containsExactly("r2-k0", "r2-k1", "r2-k2", "r2-k0", "r2-k1", "r2-k2", "r2-k0");
    }

    private SyntheticService service(LongUnaryOperator serviceNanos) {
        return new SyntheticService(clock, serviceNanos);
    }

    /** Blocks the caller of one call before the service answers it. */
    private PublishTarget blocking(SyntheticService service, int blockedCall, long blockedMs) {
        return new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                throw new UnsupportedOperationException();
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                if (service.calls.size() == blockedCall) {
                    clock.advance(blockedMs * MILLIS);
                }
                return service.publishAsync(events);
            }
        };
    }

    private LoadContext context(PublishTarget target, int batch) {
        return new LoadContext(new EventSource("ab12cd34", 0, 0, List.of()), target, batch, clock, stop);
    }

    private LoadPhase phase(long events) {
        return LoadPhase.ofEvents(false, ClockAnchor.now(clock), clock.nanos(), events);
    }

    private PhaseMeasurement run(PublishTarget target, long rate, int batch, long events) {
        LoadPhase phase = phase(events);
        long sent = new OpenLoop(context(target, batch), rate).run(phase, meter);
        return meter.measurement(sent, phase.anchor());
    }
}
