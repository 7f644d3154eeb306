package io.eventsql.runner.limits;

import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.spec.LimitsPart;
import java.sql.SQLException;

/** Measures one part of a limits run. */
abstract class LimitsBenchmark {
    final LimitsContext context;
    /** Receives the figures. */
    final PartRecorder part;

    /** @param title what is measured, one line */
    LimitsBenchmark(LimitsContext context, LimitsPart what, String title) {
        this.context = context;
        this.part = new PartRecorder(what.label(), title);
    }

    /**
     * Measures the part.
     *
     * @throws SQLException if a statement fails
     * @throws RunStoppedException after a stop signal
     * @throws IllegalStateException if a precondition is violated, such as a table that was analyzed unexpectedly
     */
    abstract void measure() throws SQLException;
}
