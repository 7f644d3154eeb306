package io.eventsql.runner.search;

import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.phases.PhasesRun;
import io.eventsql.runner.phases.Problems;
import io.eventsql.runner.result.RunResult.SearchResult;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.SearchSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/**
 * Plays the phases before the last one once, then the last one at one rate after the other. After each trial all is
 * waited for, so that a trial that was too much does not spoil the next.
 */
public final class SearchRun {

    /**
     * What came of it.
     *
     * @param phases those before, and a phase for each trial, named {@code <name>-<rate>}
     * @param figures the rates tried
     */
    public record Outcome(List<PhaseLoad> phases, SearchResult result) {}

    /** Less of the offered rate than this is not held, however quick the answers. */
    private static final double HELD_SHARE = 0.98;

    private final LoadSession session;
    private final StopSignal stop;
    private final Problems problems;
    private final Consumer<String> out;

    /** @param out takes a line for each trial */
    public SearchRun(LoadSession session, StopSignal stop, Problems problems, Consumer<String> out) {
        this.session = session;
        this.stop = stop;
        this.problems = problems;
        this.out = out;
    }

    /** Searches; after a stop signal it ends with what it has. */
    public Outcome run(SearchSpec search, List<PhaseSpec> phases) {
        List<PhaseLoad> played = new ArrayList<>(
                new PhasesRun(session, stop, problems, phase -> {}).run(phases.subList(0, phases.size() - 1)));
        List<SearchResult.Trial> trials = new ArrayList<>();
        long best = new RateSearch(search)
                .best(rate -> !stop.isRaised() && held(search, phases.getLast(), rate, played, trials))
                .orElse(0);
        return new Outcome(played, new SearchResult(best, trials));
    }

    private boolean held(
            SearchSpec search, PhaseSpec phase, long rate, List<PhaseLoad> played, List<SearchResult.Trial> trials) {
        PhaseLoad load = session.send(phase.named(phase.name() + "-" + trials.size()), rate);
        session.drain();
        played.add(load);
        PhaseMeasurement measured = load.measurement();
        Histogram micros =
                search.latency() == SearchSpec.Latency.PUBLISH ? measured.latencyMicros() : load.endToEndMicros();
        double latencyMs = micros.getValueAtPercentile(search.percentile()) / 1_000.0;
        boolean held = !stop.isRaised()
                && latencyMs <= search.limitMs()
                && measured.failedEvents() == 0
                && PhasesRun.publishRate(measured) >= HELD_SHARE * rate;
        trials.add(new SearchResult.Trial(rate, latencyMs, held));
        out.accept(String.format(
                Locale.ROOT, "%d per second: %.3f ms, %s", rate, latencyMs, held ? "held" : "did not hold"));
        return held;
    }
}
