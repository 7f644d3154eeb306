package io.eventsql.runner.phases;

import io.eventsql.runner.load.StopSignal;
import java.time.Duration;
import java.util.List;

/** Consumes the streams of a session: in this process, or in apps that run elsewhere. */
public interface Consumption extends AutoCloseable {

    /**
     * Waits until every acknowledged event is consumed. Call it when no call is unanswered.
     *
     * @param timeout the maximum time to wait
     * @param stop aborts the wait
     * @return {@code false} after a timeout or a stop signal
     */
    boolean await(Duration timeout, StopSignal stop);

    /** Returns the counts of each consumer in this process. */
    default List<ConsumerCounts> consumerCounts() {
        return List.of();
    }

    /** Returns the counts of each replayer in this process. */
    default List<ReplayerCounts> replayerCounts() {
        return List.of();
    }

    @Override
    default void close() {}
}
