package io.eventsql.runner;

import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.phases.PhasesRun;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.result.RunResult.SearchResult;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSpec.SearchSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/**
 * Runs all phases but the last once, then the last one at different rates. After each trial, waits until all events are
 * consumed, so that an overloaded trial does not affect the next one.
 */
public final class SearchRun {

    /**
     * The outcome of a search.
     *
     * @param phases the preceding phases, and a phase for each trial, named {@code <name>-<number>}
     * @param result the tested rates
     */
    public record Outcome(List<PhaseLoad> phases, SearchResult result) {}

    /** The minimum share of the offered rate for a rate to hold, regardless of latency. */
    private static final double HELD_SHARE = 0.98;

    private final LoadSession session;
    private final StopSignal stop;
    private final Problems problems;
    private final Consumer<String> out;

    /** @param out receives a line per trial */
    public SearchRun(LoadSession session, StopSignal stop, Problems problems, Consumer<String> out) {
        this.session = session;
        this.stop = stop;
        this.problems = problems;
        this.out = out;
    }

    /** Runs the search. Returns the result so far after a stop signal. */
    public Outcome run(SearchSpec search, List<PhaseSpec> phases) {
        List<PhaseLoad> played = new ArrayList<>(
                new PhasesRun(session, stop, problems, phase -> {}).run(phases.subList(0, phases.size() - 1)));
        List<SearchResult.Trial> trials = new ArrayList<>();
        long best = new RateSearch(search)
                .findBest(rate -> !stop.isRaised() && tryRate(search, phases.getLast(), rate, played, trials))
                .orElse(0);
        return new Outcome(played, new SearchResult(best, trials));
    }

    private boolean tryRate(
            SearchSpec search, PhaseSpec phase, long rate, List<PhaseLoad> played, List<SearchResult.Trial> trials) {
        PhaseLoad load = session.send(phase.withName(phase.name() + "-" + trials.size()), rate);
        session.drain();
        played.add(load);
        PhaseMeasurement measured = load.measurement();
        Histogram micros =
                search.latency() == SearchSpec.Latency.PUBLISH ? measured.latencyMicros() : load.endToEndMicros();
        double latencyMs = micros.getValueAtPercentile(search.percentile()) / 1_000.0;
        boolean held = !stop.isRaised()
                && latencyMs <= search.limitMs()
                && measured.failedEvents() == 0
                && measured.publishRate() >= HELD_SHARE * rate;
        trials.add(new SearchResult.Trial(rate, latencyMs, held));
        out.accept(String.format(
                Locale.ROOT, "%d per second: %.3f ms, %s", rate, latencyMs, held ? "held" : "did not hold"));
        return held;
    }
}
