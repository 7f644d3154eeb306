package io.eventsql.runner.load;

/** Generates load, one phase at a time. */
public interface LoadGenerator {

    /**
     * Sends the load of a phase and waits until every call is answered or timed out.
     *
     * @return the number of events passed to the target
     */
    default long run(LoadPhase phase, LoadListener listener) {
        long sent = send(phase, listener);
        awaitAnswers(listener, sent);
        return sent;
    }

    /** Sends the load of a phase without waiting for answers, so that the next phase can start in the meantime. */
    long send(LoadPhase phase, LoadListener listener);

    /** Waits until all sent events are answered. Reports those unanswered after a timeout as failed. */
    default void awaitAnswers(LoadListener listener, long sentEvents) {
        UnansweredCalls.await(context().clock(), context().stop(), listener, sentEvents);
    }

    /** Returns the context that it shares with other loads. */
    LoadContext context();
}
