package io.eventsql.runner.phases;

import io.eventsql.runner.load.LoadStream;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/** A stream under load: knows to which phase a measured event belongs, by its number. Thread-safe. */
final class SessionStream {

    private record PhaseStart(long firstNumber, PhaseLoad phase) {}

    private final String name;
    private final LoadStream load;
    private final List<PhaseStart> phaseStarts = new CopyOnWriteArrayList<>();

    SessionStream(String name, LoadStream load) {
        this.name = name;
        this.load = load;
    }

    String name() {
        return name;
    }

    LoadStream load() {
        return load;
    }

    /** A measured phase begins: further numbers are its own. */
    void begin(PhaseLoad phase) {
        phaseStarts.add(new PhaseStart(load.nextNumber(false), phase));
    }

    /** The phase of a measured event; {@code null} where there was none. */
    @Nullable
    PhaseLoad phaseOf(long number) {
        for (int i = phaseStarts.size() - 1; i >= 0; i--) {
            if (phaseStarts.get(i).firstNumber <= number) {
                return phaseStarts.get(i).phase;
            }
        }
        return null;
    }

    /** Events that were acknowledged, those of warm-ups too. */
    long acknowledgedEvents() {
        return load.acknowledgedEvents(true) + load.acknowledgedEvents(false);
    }
}
