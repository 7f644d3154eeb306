package io.eventsql;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * An event that a consumer could not handle, parked or dead-lettered.
 *
 * @param event the event as it was stored
 * @param consumer the consumer's name
 * @param deadLetter the position of its copy in the dead-letter stream; {@code null} if it is parked
 * @param error the error of the last attempt, or why it was parked without one
 * @param attempts the number of handler attempts; 0 if it was parked because of an earlier event of its key
 * @param parkedAt when it was parked or dead-lettered, by the database's clock
 * @param redriving whether a redrive is requested or in progress
 */
public record ParkedEvent(
        StoredEvent event,
        String consumer,
        @Nullable EventPosition deadLetter,
        String error,
        int attempts,
        Instant parkedAt,
        boolean redriving) {

    /** Returns whether it was copied to the dead-letter stream; otherwise it is parked and holds back its key. */
    public boolean isDeadLettered() {
        return deadLetter != null;
    }
}
