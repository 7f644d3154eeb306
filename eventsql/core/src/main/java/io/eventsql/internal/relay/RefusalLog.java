package io.eventsql.internal.relay;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs refused events: the first at once, further ones in one line a minute. Used by one thread. */
final class RefusalLog {
    private static final Logger LOG = LoggerFactory.getLogger(RefusalLog.class);
    private static final long INTERVAL_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final OutboxDatabase outbox;
    private boolean isLogged;
    private long loggedAtNanos;
    private int unreported;

    RefusalLog(OutboxDatabase outbox) {
        this.outbox = outbox;
    }

    /** Handles events that were moved to the refused table, with their reasons. */
    void refused(List<String> reasons) {
        if (reasons.isEmpty()) {
            return;
        }
        unreported += reasons.size();
        long now = System.nanoTime();
        if (!isLogged || now - loggedAtNanos >= INTERVAL_NANOS) {
            LOG.error(
                    "Refused {} events of outbox {}, which cannot be appended; its table outbox_refused keeps them until"
                            + " they are retried; reason of the last: {}",
                    unreported,
                    outbox,
                    reasons.getLast());
            isLogged = true;
            loggedAtNanos = now;
            unreported = 0;
        }
    }
}
