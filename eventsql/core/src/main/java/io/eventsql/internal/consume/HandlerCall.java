package io.eventsql.internal.consume;

import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.StoredEvent;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;

/** A handler of any kind. */
interface HandlerCall {
    /** Whether one call takes many events; otherwise each takes one. */
    boolean takesBatches();

    /**
     * Whether the effects are committed together with the offset, or not at all: then nothing of a failed call stays.
     */
    boolean isTransactional();

    /**
     * Calls the handler with events of one partition; returns when their effects count.
     *
     * @param alsoCommit what belongs into the same transaction, if there is one
     * @throws LostException if the partition is no longer held
     * @throws NotHandledException if the database failed
     */
    void call(ShardMember member, OwnedPartition partition, List<StoredEvent> events, Step alsoCommit) throws Exception;

    /** A step in a transaction. */
    @FunctionalInterface
    interface Step {
        Step NONE = connection -> {};

        void run(Connection connection) throws SQLException;
    }

    /** The partition is no longer held: nothing was done, nothing more may be done. */
    final class LostException extends Exception {
        private static final long serialVersionUID = 1L;

        LostException(String message) {
            super(message);
        }
    }

    /** Nothing was done, for a reason that is not the handler's: tried again, and not counted as an attempt. */
    final class NotHandledException extends Exception {
        private static final long serialVersionUID = 1L;

        NotHandledException(String message) {
            super(message);
        }

        NotHandledException(String message, Exception cause) {
            super(message, cause);
        }
    }

    static HandlerCall ofSingle(EventHandler handler) {
        return new Plain(false, events -> handler.handle(events.getFirst()));
    }

    static HandlerCall ofBatch(EventBatchHandler handler) {
        return new Plain(true, handler);
    }

    /** At least once: offsets are committed later. */
    record Plain(boolean takesBatches, EventBatchHandler handler) implements HandlerCall {
        @Override
        public boolean isTransactional() {
            return false;
        }

        @Override
        public void call(ShardMember member, OwnedPartition partition, List<StoredEvent> events, Step alsoCommit)
                throws Exception {
            handler.handle(events);
        }
    }
}
