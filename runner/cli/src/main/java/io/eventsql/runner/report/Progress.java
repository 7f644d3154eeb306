package io.eventsql.runner.report;

/** Shows how far a phase is. */
public interface Progress extends AutoCloseable {

    /**
     * Shows where it is now; called about once a second.
     *
     * @param published events acknowledged so far
     * @param failed events that failed so far
     */
    void show(long published, long failed);

    @Override
    void close();
}
