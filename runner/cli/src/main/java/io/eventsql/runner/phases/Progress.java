package io.eventsql.runner.phases;

/** Displays the progress of a phase. */
public interface Progress extends AutoCloseable {
    /** Displays nothing. */
    Progress NONE = new Progress() {
        @Override
        public void show(long published, long failed) {}

        @Override
        public void close() {}
    };

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
