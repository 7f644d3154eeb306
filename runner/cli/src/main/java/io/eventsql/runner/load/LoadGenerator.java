package io.eventsql.runner.load;

/** A way to send load. For one phase at a time. */
public interface LoadGenerator {

    /**
     * Sends the phase's load and returns when every call is answered, or given up after a {@link StopSignal}.
     *
     * @return how many events were handed to the target
     */
    default long run(LoadPhase phase, LoadListener listener) {
        long sent = send(phase, listener);
        awaitAnswers(listener, sent);
        return sent;
    }

    /** The same without waiting for answers: what follows may be sent meanwhile. */
    long send(LoadPhase phase, LoadListener listener);

    /** Waits until all events sent are answered; reports those that are not in time as failed. */
    void awaitAnswers(LoadListener listener, long sentEvents);
}
