package io.eventsql.runner.load;

/** A way to send load. For one phase at a time. */
public interface LoadGenerator {

    /**
     * Sends the phase's load and returns when every call is answered, or given up after a {@link StopSignal}.
     *
     * @return how many events were handed to the target
     */
    long run(LoadPhase phase, LoadListener listener);
}
