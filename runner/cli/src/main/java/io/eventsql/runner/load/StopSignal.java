package io.eventsql.runner.load;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Tells a run to end early, and why. Raised once, the first reason stays. Thread-safe. */
public final class StopSignal {

    /** Why a run ends early. */
    public enum Reason {
        /** Ctrl-C or SIGTERM. */
        INTERRUPTED,
        /** Nothing was acknowledged for a long time. */
        NO_PROGRESS
    }

    private final AtomicReference<@Nullable Reason> reason = new AtomicReference<>();

    public void raise(Reason why) {
        reason.compareAndSet(null, why);
    }

    public boolean isRaised() {
        return reason.get() != null;
    }

    /** Why, or {@code null} while the run may go on. */
    public @Nullable Reason reason() {
        return reason.get();
    }

    public boolean isInterrupted() {
        return reason.get() == Reason.INTERRUPTED;
    }
}
