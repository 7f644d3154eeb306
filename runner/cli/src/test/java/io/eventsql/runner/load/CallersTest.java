package io.eventsql.runner.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.testing.ManualClock;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CallersTest {

    /** Records the events of each calling thread. Acknowledges immediately. */
    private static final class RecordingTarget implements PublishTarget {
        final Map<Thread, ConcurrentLinkedQueue<Event>> byCaller = new ConcurrentHashMap<>();

        @Override
        public void publish(List<Event> events) {
            byCaller.computeIfAbsent(Thread.currentThread(), caller -> new ConcurrentLinkedQueue<>())
                    .addAll(events);
        }

        @Override
        public CompletionStage<?> publishAsync(List<Event> events) {
            publish(events);
            return CompletableFuture.completedFuture(null);
        }

        List<Event> all() {
            List<Event> all = new ArrayList<>();
            byCaller.values().forEach(all::addAll);
            return all;
        }
    }

    private final StopSignal stop = new StopSignal();
    private final PublishMeter meter = new PublishMeter();

    @Test
    void run_waiting_sendsEachNumberOnce() {
        RecordingTarget target = new RecordingTarget();

        PhaseMeasurement measured = run(Callers.waiting(context(target, 7, List.of()), 20), 10_000);

        assertThat(measured.publishedEvents()).isEqualTo(10_000);
        assertThat(measured.latencyMicros().getTotalCount()).isEqualTo(10_000);
        assertEachNumberOnce(target, 10_000);
    }

    @Test
    void run_notWaiting_sendsEachNumberOnce() {
        RecordingTarget target = new RecordingTarget();

        PhaseMeasurement measured = run(Callers.notWaiting(context(target, 1, List.of()), 20), 10_000);

        assertThat(measured.publishedEvents()).isEqualTo(10_000);
        assertEachNumberOnce(target, 10_000);
    }

    @Test
    void run_keyed_usesEachKeyInOneCallerOnlyAndInRisingOrder() {
        RecordingTarget target = new RecordingTarget();

        run(Callers.waiting(context(target, 3, KeyShare.keysOf(1, 103)), 10), 20_000);

        Map<String, Thread> owner = new ConcurrentHashMap<>();
        Map<String, Long> lastNumber = new ConcurrentHashMap<>();
        target.byCaller.forEach((caller, events) -> events.forEach(event -> {
            assertThat(owner.computeIfAbsent(event.key(), key -> caller)).isSameAs(caller);
            long number = BenchmarkEvent.decode(event.value()).number();
            Long before = lastNumber.put(event.key(), number);
            assertThat(number).isGreaterThan(before == null ? -1 : before);
        }));
        assertThat(owner.keySet()).allMatch(key -> key.startsWith("r1-k"));
    }

    @Test
    void run_waiting_makesCallsConcurrently() {
        CyclicBarrier allThere = new CyclicBarrier(50);
        Set<Thread> callers = ConcurrentHashMap.newKeySet();
        PublishTarget meeting = new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                callers.add(Thread.currentThread());
                try {
                    allThere.await(120, TimeUnit.SECONDS);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                throw new UnsupportedOperationException();
            }
        };

        PhaseMeasurement measured = run(Callers.waiting(context(meeting, 1, List.of()), 50), 100);

        assertThat(measured.errors()).isEmpty();
        assertThat(callers).hasSize(50);
    }

    @Test
    void run_service_latencyIsFromTheCallToTheAnswer() {
        ManualClock clock = new ManualClock();
        PublishTarget service = new PublishTarget() {
            private int calls;

            @Override
            public void publish(List<Event> events) {
                clock.advance(calls++ % 10 == 0 ? 30_000_000 : 3_000_000);
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                throw new UnsupportedOperationException();
            }
        };
        LoadContext context = new LoadContext(source(List.of()), service, 1, clock, stop);
        LoadPhase phase = LoadPhase.ofEvents(false, ClockAnchor.now(clock), clock.nanos(), 1_000);

        long sent = Callers.waiting(context, 1).run(phase, meter);

        PhaseMeasurement measured = meter.measurement(sent, phase.anchor());
        assertThat(measured.latencyMicros().getCountBetweenValues(2_999, 3_001)).isEqualTo(900);
        assertThat(measured.latencyMicros().getCountBetweenValues(29_990, 30_010))
                .isEqualTo(100);
        assertThat(measured.scheduleDelayMicros().getTotalCount()).isZero();
        assertThat(measured.lastAcknowledgedAtMicros())
                .isEqualTo(ManualClock.START_EPOCH_MICROS + 900 * 3_000 + 100 * 30_000);
    }

    @Test
    void run_phaseWithDuration_endsOnTime() {
        ManualClock clock = new ManualClock();
        PublishTarget service = new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                assertThat(BenchmarkEvent.decode(events.getFirst().value()).warmup())
                        .isTrue();
                clock.advance(1_000_000);
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                throw new UnsupportedOperationException();
            }
        };
        LoadContext context = new LoadContext(source(List.of()), service, 1, clock, stop);
        LoadPhase phase = LoadPhase.ofNanos(true, ClockAnchor.now(clock), clock.nanos() + 5_000, 2_000_000_000);

        long sent = Callers.waiting(context, 1).run(phase, meter);

        assertThat(sent).isEqualTo(2_000);
        assertThat(meter.failedEvents()).isZero();
    }

    @Test
    void run_stopSignal_endsAllCallers() {
        PublishTarget stopping = new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                stop.raise(StopSignal.Reason.INTERRUPTED);
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                throw new UnsupportedOperationException();
            }
        };

        PhaseMeasurement measured = run(Callers.waiting(context(stopping, 1, List.of()), 8), 1_000_000);

        assertThat(measured.sentEvents()).isBetween(1L, 8L);
        assertThat(measured.publishedEvents()).isEqualTo(measured.sentEvents());
    }

    @Test
    void run_callerFails_isReported() {
        PublishTarget broken = new PublishTarget() {
            @Override
            public void publish(List<Event> events) {
                throw new AssertionError("broken");
            }

            @Override
            public CompletionStage<?> publishAsync(List<Event> events) {
                throw new UnsupportedOperationException();
            }
        };

        assertThatThrownBy(() -> run(Callers.waiting(context(broken, 1, List.of()), 2), 10))
                .hasMessageContaining("broken");
    }

    private static void assertEachNumberOnce(RecordingTarget target, int events) {
        BitSet numbers = new BitSet();
        List<Event> all = target.all();
        all.forEach(
                event -> numbers.set((int) BenchmarkEvent.decode(event.value()).number()));
        assertThat(all).hasSize(events);
        assertThat(numbers.cardinality()).isEqualTo(events);
        assertThat(numbers.length()).isEqualTo(events);
    }

    private static EventSource source(List<String> keys) {
        return new EventSource("ab12cd34", 1, 0, keys);
    }

    private LoadContext context(PublishTarget target, int batch, List<String> keys) {
        return new LoadContext(source(keys), target, batch, LoadClock.SYSTEM, stop);
    }

    private PhaseMeasurement run(Callers callers, long events) {
        LoadPhase phase =
                LoadPhase.ofEvents(false, ClockAnchor.now(LoadClock.SYSTEM), LoadClock.SYSTEM.nanos(), events);
        return meter.measurement(callers.run(phase, meter), phase.anchor());
    }
}
