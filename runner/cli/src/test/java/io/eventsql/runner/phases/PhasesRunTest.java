package io.eventsql.runner.phases;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.WorkloadKind;
import io.eventsql.runner.testing.ManualClock;
import io.eventsql.runner.testing.SyntheticDriver;
import io.eventsql.runner.testing.SyntheticService;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** Phases on a manual clock, against a system with known service times. */
class PhasesRunTest {
    private static final long MILLIS = 1_000_000;

    private final ManualClock clock = new ManualClock();
    private final StopSignal stop = new StopSignal();
    private final Problems problems = new Problems();
    private SyntheticDriver driver;
    private LoadSession session;

    @Test
    void run_knownServiceTimes_areTheLatenciesOfTheirPhase() throws Exception {
        // 99 of 100 calls take 2 ms, one takes 40 ms; those of the warm-up take 7 ms.
        List<PhaseLoad> phases = run(
                call -> call < 500 ? 7 * MILLIS : call % 100 == 50 ? 40 * MILLIS : 2 * MILLIS,
                streams(1, 1),
                rate("warm-up", false, "500", 1),
                rate("steady", true, "1000", 10));

        assertThat(phases.getFirst().measurement().publishedEvents()).isEqualTo(500);
        PhaseMeasurement steady = phases.getLast().measurement();
        assertThat(steady.sentEvents()).isEqualTo(10_000);
        assertThat(steady.publishedEvents()).isEqualTo(10_000);
        for (Histogram micros : List.of(
                steady.latencyMicros(), steady.serviceMicros(), phases.getLast().endToEndMicros())) {
            assertThat(micros.getTotalCount()).isEqualTo(10_000);
            assertThat(micros.getCountBetweenValues(1_999, 2_003)).isEqualTo(9_900);
            assertThat(micros.getCountBetweenValues(39_960, 40_040)).isEqualTo(100);
        }
        assertThat(steady.scheduleDelayMicros().getMaxValue()).isZero();
        assertThat(session.consumerCounts())
                .extracting(ConsumerCounts::eventsSeen, ConsumerCounts::eventsLost)
                .containsExactly(tuple(10_500L, 0L));
        assertThat(problems.all()).isEmpty();
    }

    @Test
    void run_measuredPhases_areRecordedBySecond() throws Exception {
        run(
                call -> 10 * MILLIS,
                streams(1, 2),
                rate("warm-up", false, "500", 1),
                rate("slow", true, "100", 2),
                rate("fast", true, "400", 2));

        TimeSeries table = session.series().finish(clock.nanos());
        assertThat(table.t()).startsWith(0, 1, 2, 3);
        assertThat(table.phase()).startsWith("slow", "slow", "fast", "fast");
        assertThat(table.offeredRate()).startsWith(100.0, 100.0, 400.0, 400.0);
        // Events sent in the last 10 ms of a second are answered in the next one.
        assertThat(table.publishRate()).startsWith(99.0, 100.0, 397.0, 400.0);
        assertThat(table.consumeRate()).startsWith(198.0, 200.0, 794.0, 800.0);
        assertThat(table.inFlight()).startsWith(1.0, 1.0, 4.0, 4.0);
        assertThat(table.lag()).startsWith(0.0, 0.0, 0.0, 0.0);
        assertThat(table.publishP50Ms().getFirst()).isBetween(9.9, 10.1);
        assertThat(table.endToEndP99Ms().getFirst()).isBetween(9.9, 10.1);
        assertThat(table.missed()).startsWith(0.0, 0.0, 0.0, 0.0);
    }

    @Test
    void run_multiple_refersToTheRateWithCallersAndTheBoundMissesSlots() throws Exception {
        // One caller gets 100 answers per second, two unanswered events allow 200.
        List<PhaseLoad> phases = run(
                call -> 10 * MILLIS,
                streams(1, 1),
                new PhaseSpec("sustainable", true, null, null, 1, false, 1, 10),
                new PhaseSpec("overload", true, PhaseRate.of("5x"), 2L, null, false, 1, 10),
                rate("recovery", true, "0.5x", 10));

        assertThat(phases.getFirst().measurement().publishRate()).isBetween(99.9, 100.1);
        PhaseLoad overload = phases.get(1);
        assertThat(overload.eventsPerSecond()).isEqualTo(500);
        assertThat(overload.sentEvents() + overload.missedEvents()).isEqualTo(5_000);
        assertThat(overload.sentEvents()).isBetween(1_600L, 2_000L);
        assertThat(overload.measurement().latencyMicros().getMaxValue()).isBetween(9_990L, 10_260L);
        assertThat(overload.measurement().scheduleDelayMicros().getMaxValue())
                .as("missed slots are not sent late")
                .isLessThan(260);
        assertThat(phases.getLast().eventsPerSecond()).isEqualTo(50);
        assertThat(phases.getLast().startNanos() - overload.startNanos())
                .as("phases follow each other without a pause")
                .isEqualTo(10_000 * MILLIS);
        assertThat(session.consumerCounts().getFirst().eventsLost()).isZero();
    }

    @Test
    void run_boundThatIsNeverReached_missesNothing() throws Exception {
        // Ten slots per millisecond. The last ones become due together at the end of the phase.
        List<PhaseLoad> phases = run(
                call -> MILLIS,
                streams(1, 1),
                new PhaseSpec("trial", true, PhaseRate.of(10_000), 100L, null, false, 1, 1));

        assertThat(phases.getFirst().sentEvents()).isEqualTo(10_000);
        assertThat(phases.getFirst().missedEvents()).isZero();
    }

    @Test
    void run_severalStreams_areCalledInRotationAndNumberedSeparately() throws Exception {
        run(
                call -> MILLIS,
                streams(3, 1),
                rate("warm-up", false, "90", 1),
                new PhaseSpec("steady", true, PhaseRate.of(300), null, null, false, 10, 1));

        assertThat(driver.published).hasSize(3).allSatisfy((name, events) -> {
            assertThat(numbers(events, true))
                    .isEqualTo(LongStream.range(0, 30).boxed().toList());
            assertThat(numbers(events, false))
                    .isEqualTo(LongStream.range(0, 100).boxed().toList());
        });
        assertThat(session.consumerCounts())
                .hasSize(3)
                .allMatch(counts -> counts.eventsSeen() == 130 && counts.eventsLost() == 0);
    }

    @Test
    void run_lostDuplicatedAndReorderedDeliveries_areCounted() throws Exception {
        List<Event> held = new ArrayList<>();
        List<PhaseLoad> phases = run(
                call -> MILLIS,
                new RunSpec.StreamsSpec(1, 1, 1, 0, 1),
                made -> made.onDelivery(events -> {
                    long number =
                            BenchmarkEvent.decode(events.getFirst().value()).number();
                    if (number == 3) {
                        return List.of();
                    }
                    if (number == 5) {
                        return List.of(events.getFirst(), events.getFirst());
                    }
                    if (number == 7) {
                        held.addAll(events);
                        return List.of();
                    }
                    return number == 8 ? List.of(events.getFirst(), held.getFirst()) : events;
                }),
                List.of(rate("steady", true, "10", 1)));

        assertThat(phases.getFirst().measurement().publishedEvents()).isEqualTo(10);
        assertThat(phases.getFirst().deliveredEvents()).isEqualTo(9);
        ConsumerCounts counts = session.consumerCounts().getFirst();
        assertThat(counts.eventsSeen()).isEqualTo(9);
        assertThat(counts.eventsLost()).isEqualTo(1);
        assertThat(counts.eventsDuplicated()).isEqualTo(1);
        assertThat(counts.orderViolations()).isEqualTo(1);
        assertThat(problems.all()).containsExactly("Not everything was consumed within 1 s");
    }

    @Test
    void run_stopped_endsThePhaseAndSkipsTheRest() throws Exception {
        List<PhaseLoad> phases = run(
                call -> {
                    if (call == 1_500) {
                        stop.raise(StopSignal.Reason.INTERRUPTED);
                    }
                    return MILLIS;
                },
                streams(1, 1),
                rate("steady", true, "1000", 10),
                rate("more", true, "1000", 10));

        assertThat(phases).hasSize(1);
        assertThat(phases.getFirst().measurement().publishedEvents()).isEqualTo(1_501);
        assertThat(phases.getFirst().endedNanos() - phases.getFirst().startNanos())
                .isBetween(1_499 * MILLIS, 1_600 * MILLIS);
        assertThat(session.consumerCounts().getFirst().eventsLost()).isZero();
    }

    private static List<Long> numbers(List<Event> events, boolean warmup) {
        return events.stream()
                .map(event -> BenchmarkEvent.decode(event.value()))
                .filter(event -> event.warmup() == warmup)
                .map(BenchmarkEvent::number)
                .toList();
    }

    private static PhaseSpec rate(String name, boolean measured, String rate, int seconds) {
        return new PhaseSpec(name, measured, PhaseRate.of(rate), null, null, false, 1, seconds);
    }

    private static RunSpec.StreamsSpec streams(int streams, int consumers) {
        return new RunSpec.StreamsSpec(streams, 1, consumers, 0, 120);
    }

    private List<PhaseLoad> run(LongUnaryOperator serviceNanos, RunSpec.StreamsSpec streams, PhaseSpec... phases)
            throws Exception {
        return run(serviceNanos, streams, made -> {}, List.of(phases));
    }

    private List<PhaseLoad> run(
            LongUnaryOperator serviceNanos,
            RunSpec.StreamsSpec streams,
            Consumer<SyntheticDriver> prepare,
            List<PhaseSpec> phases)
            throws Exception {
        driver = new SyntheticDriver(new SyntheticService(clock, serviceNanos));
        prepare.accept(driver);
        RunSpec spec = new RunSpec(
                "run",
                WorkloadKind.PHASES,
                new RunSpec.EnvironmentSpec("none", 0, "none", Map.of()),
                new RunSpec.SystemSpec("synthetic", Map.of()),
                new RunSpec.EventsSpec(0, streams.streams() == 1 ? 1 : 0),
                streams,
                phases,
                null,
                null,
                null,
                null,
                Map.of());
        PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
        session = LoadSession.open(
                driver, new LoadSession.Context(spec, clock, stop, problems, ProgressDisplay.lines(nowhere, clock)));
        List<PhaseLoad> played = new PhasesRun(session, stop, problems, phase -> {}).run(phases);
        session.close();
        return played;
    }
}
