package io.eventsql.runner.trials;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;

/** A stream that is empty at the start of each trial. Cleared, or replaced by a new one if the driver cannot clear. */
final class TrialStream {
    private final Driver driver;
    private final String name;
    private final int partitions;
    private String current = "";
    private int made;

    /** @param name the name of the first stream; further ones get a number suffix */
    TrialStream(Driver driver, String name, int partitions) {
        this.driver = driver;
        this.name = name;
        this.partitions = partitions;
    }

    /** Empties the stream and returns its publisher. */
    PublishTarget reset() throws Exception {
        if (made == 0 || !tryClear()) {
            current = made == 0 ? name : name + "_" + made;
            driver.createStream(current, partitions);
            made++;
        }
        return driver.publisher(current);
    }

    private boolean tryClear() throws Exception {
        try {
            driver.clear(current);
            return true;
        } catch (UnsupportedOperationException e) {
            return false;
        }
    }
}
