package io.eventsql;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * An event that a consumer could not handle, parked or dead-lettered.
 *
 * @param event the event as it was stored
 * @param consumer whose it is
 * @param deadLetter where its copy is in the dead-letter stream; {@code null} if it is parked
 * @param error why it was set aside
 * @param attempts how often it was handled; 0 if only because its key was parked
 * @param parkedAt when, by the database's clock
 * @param redriving whether it is to be handled again
 */
public record ParkedEvent(
        StoredEvent event,
        String consumer,
        @Nullable EventPosition deadLetter,
        String error,
        int attempts,
        Instant parkedAt,
        boolean redriving) {

    /** Whether its key is held back with it. */
    public boolean isParked() {
        return deadLetter == null;
    }
}
