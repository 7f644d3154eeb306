package io.eventsql.runner.driver;

/**
 * A small program with the client of a system and nothing of the runner: it publishes numbered values and counts
 * what arrives. The tuned figures of a driver are compared with it, under the same settings and on the same server.
 */
@FunctionalInterface
public interface PlainProgram {

    /**
     * The load of a program.
     *
     * @param callers the callers that wait for each acknowledgement; ignored if {@code async}
     * @param async whether events are sent without waiting, as fast as the client accepts them
     * @param eventsPerCall the events of a call
     * @param eventBytes the size of a value; 0 for that of the main experiment, about 230
     * @param seconds how long to publish
     */
    record Load(int callers, boolean async, int eventsPerCall, int eventBytes, double seconds) {}

    /**
     * What a program has reached. Both rates are events/s from the first call to the last event.
     *
     * @param publishRate until the last acknowledgement
     * @param consumeRate until the last delivery
     */
    record Rates(double publishRate, double consumeRate) {}

    /** Publishes to a new stream and consumes it at the same time. Returns when everything has arrived. */
    Rates run(DriverSettings settings, Load load) throws Exception;
}
