package io.eventsql.runner.phases;

import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Plays the phases of a run in order. Measured phases follow each other without a pause; after a warm-up it is waited
 * until all of it is consumed, so that nothing of it burdens what is measured.
 */
public final class PhasesRun {
    /** What the load generator can schedule, events/s. */
    static final long RATE_MAX = 1_000_000;

    private final LoadSession session;
    private final StopSignal stop;
    private final Problems problems;
    private final Consumer<PhaseLoad> played;

    /** @param played hears of each phase whose calls are made */
    public PhasesRun(LoadSession session, StopSignal stop, Problems problems, Consumer<PhaseLoad> played) {
        this.session = session;
        this.stop = stop;
        this.problems = problems;
        this.played = played;
    }

    /** Plays them and waits until all is consumed; after a stop signal those that remain are left out. */
    public List<PhaseLoad> run(List<PhaseSpec> phases) {
        List<PhaseLoad> all = new ArrayList<>();
        double reference = 0;
        for (PhaseSpec phase : phases) {
            if (stop.isRaised()) {
                break;
            }
            PhaseLoad load = session.send(phase, eventsPerSecond(phase, reference));
            all.add(load);
            if (phase.measured() && phase.callers() != null) {
                session.awaitAnswers();
                reference = publishRate(load.measurement());
            }
            if (!phase.measured()) {
                session.drain();
            }
            played.accept(load);
        }
        session.drain();
        return all;
    }

    private long eventsPerSecond(PhaseSpec phase, double reference) {
        PhaseRate rate = phase.rate();
        if (rate == null) {
            return 0;
        }
        long asked = rate.eventsPerSecond(reference);
        if (asked > RATE_MAX) {
            problems.add("The phase " + phase.name() + " would be " + asked + " events per second, but the generator's"
                    + " limit is " + RATE_MAX);
        }
        return Math.min(asked, RATE_MAX);
    }

    /** Events acknowledged each second, from the first intended send to the last acknowledgement; 0 where unknown. */
    public static double publishRate(PhaseMeasurement measured) {
        Long first = measured.firstIntendedAtMicros();
        Long last = measured.lastAcknowledgedAtMicros();
        return first == null || last == null || last <= first ? 0 : measured.publishedEvents() * 1e6 / (last - first);
    }
}
