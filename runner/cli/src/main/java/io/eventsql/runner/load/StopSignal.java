package io.eventsql.runner.load;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Aborts a run, with a reason. Only the first call of {@link #raise} has an effect. Thread-safe. */
public final class StopSignal {

    /** The reasons to abort a run. */
    public enum Reason {
        /** Ctrl-C or SIGTERM. */
        INTERRUPTED,
        /** No event was acknowledged for a long time. */
        NO_PROGRESS
    }

    private final AtomicReference<@Nullable Reason> reason = new AtomicReference<>();

    public void raise(Reason why) {
        reason.compareAndSet(null, why);
    }

    public boolean isRaised() {
        return reason.get() != null;
    }

    /** Returns the reason, or {@code null} if not raised. */
    public @Nullable Reason reason() {
        return reason.get();
    }

    public boolean isInterrupted() {
        return reason.get() == Reason.INTERRUPTED;
    }
}
