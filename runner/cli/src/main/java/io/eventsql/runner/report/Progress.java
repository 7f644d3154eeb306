package io.eventsql.runner.report;

/** Displays the progress of a phase. */
public interface Progress extends AutoCloseable {

    /**
     * Updates the display. Called about once per second.
     *
     * @param published the events acknowledged so far
     * @param failed the events failed so far
     */
    void show(long published, long failed);

    @Override
    void close();
}
