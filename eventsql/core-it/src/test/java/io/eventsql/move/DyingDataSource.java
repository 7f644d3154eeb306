package io.eventsql.move;

import io.eventsql.fixture.AfterCommitDataSource;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import javax.sql.DataSource;

/** Lets the calling process die, as far as a move or a seek is concerned, after it has committed a number of steps of it. */
final class DyingDataSource extends AfterCommitDataSource {
    private static final Pattern STEP =
            Pattern.compile("eventsql[.](decide_move|join_move|keep_streams|receive_slots|freeze_receiver"
                    + "|begin_closing|close_slots|open_slots|finish_move|hold_receivers)_v[0-9]");

    DyingDataSource(DataSource target, Steps steps) {
        super(target, STEP, steps::committed);
    }

    /** Thrown after the commit of the last step. */
    static final class DiedException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        DiedException(String step) {
            super("died after " + step);
        }
    }

    /** The steps that the process takes before it dies, on all databases. */
    static final class Steps {
        private final AtomicInteger left;
        private final List<String> taken = new CopyOnWriteArrayList<>();

        Steps(int left) {
            this.left = new AtomicInteger(left);
        }

        List<String> taken() {
            return taken;
        }

        private void committed(String step) {
            taken.add(step);
            if (left.decrementAndGet() == 0) {
                throw new DiedException(step);
            }
        }
    }
}
