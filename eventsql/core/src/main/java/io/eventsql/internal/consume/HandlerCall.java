package io.eventsql.internal.consume;

import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.StoredEvent;
import io.eventsql.internal.shard.Shard;
import java.util.List;

/** Calls a handler, of whatever kind, with the events of one shard. */
interface HandlerCall {
    /** Whether one call takes many events; otherwise each takes one. */
    boolean takesBatches();

    /** Whether the effects are committed together with the offset, so that nothing of a failed call remains. */
    boolean isTransactional();

    /**
     * Calls the handler with events of one partition; returns when their effects count.
     *
     * @param alsoCommit statements of the same transaction, if the handler is transactional
     * @throws LostException if the partition is no longer owned
     * @throws NotHandledException if the database failed
     */
    void call(Assignment assignment, List<StoredEvent> events, TransactionStep alsoCommit) throws Exception;

    /** Creates the calls of one handler for each shard. */
    @FunctionalInterface
    interface Factory {
        HandlerCall create(Shard shard, OffsetCommitter committer);
    }

    /** The partition is no longer owned: nothing was done, nothing more may be done. */
    final class LostException extends Exception {
        private static final long serialVersionUID = 1L;

        LostException(String message) {
            super(message);
        }
    }

    /** Nothing was done, for a reason other than the handler: it is retried and not counted as an attempt. */
    final class NotHandledException extends Exception {
        private static final long serialVersionUID = 1L;

        NotHandledException(String message) {
            super(message);
        }

        NotHandledException(String message, Exception cause) {
            super(message, cause);
        }
    }

    static Factory ofSingle(EventHandler handler) {
        return (shard, committer) -> new Plain(false, events -> handler.handle(events.getFirst()));
    }

    static Factory ofBatch(EventBatchHandler handler) {
        return (shard, committer) -> new Plain(true, handler);
    }

    /** At least once: offsets are committed later. */
    record Plain(boolean takesBatches, EventBatchHandler handler) implements HandlerCall {
        @Override
        public boolean isTransactional() {
            return false;
        }

        @Override
        public void call(Assignment assignment, List<StoredEvent> events, TransactionStep alsoCommit) throws Exception {
            handler.handle(events);
        }
    }
}
