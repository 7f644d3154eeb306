package io.eventsql.runner.phases;

import io.eventsql.runner.database.HeldSnapshot;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Runs the phases of a run in order. Measured phases follow each other without a pause. A warm-up is consumed
 * completely before the next phase starts, so that it does not affect measurements.
 */
public final class PhasesRun {
    /** The limit of the load generator in events/s. */
    static final long RATE_MAX = 1_000_000;

    private final LoadSession session;
    private final StopSignal stop;
    private final Problems problems;
    private final Consumer<PhaseLoad> played;
    private final @Nullable DataSource database;

    /** @param played receives each phase after its calls are made */
    public PhasesRun(LoadSession session, StopSignal stop, Problems problems, Consumer<PhaseLoad> played) {
        this(session, stop, problems, played, null);
    }

    /** @param database the database on which snapshots are held; {@code null} if no phase requires one */
    public PhasesRun(
            LoadSession session,
            StopSignal stop,
            Problems problems,
            Consumer<PhaseLoad> played,
            @Nullable DataSource database) {
        this.session = session;
        this.stop = stop;
        this.problems = problems;
        this.played = played;
        this.database = database;
    }

    /** Runs the phases and waits until all events are consumed. Skips the remaining phases after a stop signal. */
    public List<PhaseLoad> run(List<PhaseSpec> phases) {
        List<PhaseLoad> all = new ArrayList<>();
        double reference = 0;
        for (PhaseSpec phase : phases) {
            if (stop.isRaised()) {
                break;
            }
            PhaseLoad load = send(phase, eventsPerSecond(phase, reference));
            all.add(load);
            if (phase.measured() && phase.callers() != null) {
                session.awaitAnswers();
                reference = load.measurement().publishRate();
            }
            if (!phase.measured()) {
                session.drain();
            }
            played.accept(load);
        }
        session.drain();
        return all;
    }

    private PhaseLoad send(PhaseSpec phase, long eventsPerSecond) {
        PhaseLoad load = null;
        if (phase.holdsSnapshot()) {
            try (HeldSnapshot snapshot = HeldSnapshot.take(Objects.requireNonNull(database))) {
                load = session.send(phase, eventsPerSecond);
                snapshot.ageTransactions();
            } catch (SQLException e) {
                problems.add("Phase " + phase.name() + ": no snapshot was held to its end: " + e.getMessage());
            }
        }
        return load == null ? session.send(phase, eventsPerSecond) : load;
    }

    private long eventsPerSecond(PhaseSpec phase, double reference) {
        PhaseRate rate = phase.rate();
        if (rate == null) {
            return 0;
        }
        long asked = rate.eventsPerSecond(reference);
        if (asked > RATE_MAX) {
            problems.add("Phase " + phase.name() + " requires " + asked + " events per second, but the generator's"
                    + " limit is " + RATE_MAX);
        }
        return Math.min(asked, RATE_MAX);
    }
}
