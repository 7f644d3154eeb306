package io.eventsql.runner.phases;

import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.LoadStream;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/** A stream of a session. Maps measured events to their phase by number. Thread-safe. */
final class SessionStream extends LoadStream {

    private record PhaseStart(long firstNumber, PhaseLoad phase) {}

    private final String name;
    private final List<PhaseStart> phaseStarts = new CopyOnWriteArrayList<>();

    SessionStream(String name, PublishTarget target) {
        super(target);
        this.name = name;
    }

    String name() {
        return name;
    }

    /** Starts a measured phase, to which all further event numbers belong. */
    void startPhase(PhaseLoad phase) {
        phaseStarts.add(new PhaseStart(nextNumber(false), phase));
    }

    /** Returns the phase of a measured event; {@code null} if there was none. */
    @Nullable
    PhaseLoad phaseOf(long number) {
        for (int i = phaseStarts.size() - 1; i >= 0; i--) {
            if (phaseStarts.get(i).firstNumber <= number) {
                return phaseStarts.get(i).phase;
            }
        }
        return null;
    }

    /** Returns the acknowledged events, including warm-ups. */
    long acknowledgedEvents() {
        return acknowledgedEvents(true) + acknowledgedEvents(false);
    }
}
