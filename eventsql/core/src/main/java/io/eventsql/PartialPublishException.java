package io.eventsql;

import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A {@code publishAll} over several shards that succeeded on some of them only. Says for each event what became of it.
 */
public final class PartialPublishException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    /**
     * What became of one event.
     *
     * @param position where it is stored, or {@code null} if it is not known to be
     * @param failure why not: {@link EventNotStoredException} or {@link EventOutcomeUnknownException}; {@code null} if
     *     it is stored
     */
    public record Outcome(
            @Nullable EventPosition position, @Nullable EventSqlException failure) {
        /** Whether the event is stored. */
        public boolean isStored() {
            return position != null;
        }
    }

    private final transient List<Outcome> outcomes;

    public PartialPublishException(String message, List<Outcome> outcomes, @Nullable Throwable cause) {
        super(message, cause);
        this.outcomes = List.copyOf(outcomes);
    }

    /** One outcome for each event of the call, in the order of the call. */
    public List<Outcome> outcomes() {
        return outcomes == null ? Collections.emptyList() : outcomes;
    }
}
