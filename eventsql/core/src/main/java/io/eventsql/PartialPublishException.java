package io.eventsql;

import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if the events of a {@code publishAll} over several shards have different outcomes: some are stored and others are not,
 * or some are certainly not stored and others may be. Reports the outcome of each event. Publish those again whose failure is an
 * {@link EventNotStoredException}.
 */
public final class PartialPublishException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    /**
     * Outcome of one event.
     *
     * @param position the position of the stored event; {@code null} if it is not known to be stored
     * @param failure an {@link EventNotStoredException} or {@link EventOutcomeUnknownException}; {@code null} if the event
     *     is stored
     */
    public record Outcome(
            @Nullable EventPosition position, @Nullable EventSqlException failure) {
        /** Returns whether the event is stored. */
        public boolean isStored() {
            return position != null;
        }
    }

    private final transient List<Outcome> outcomes;

    public PartialPublishException(String message, List<Outcome> outcomes, @Nullable Throwable cause) {
        super(message, cause);
        this.outcomes = List.copyOf(outcomes);
    }

    /** Returns one outcome for each event of the call, in the order of the call. */
    public List<Outcome> outcomes() {
        return outcomes == null ? Collections.emptyList() : outcomes;
    }
}
