package io.eventsql.runner.trials;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.PublishTarget;

/** A stream that is empty at the start of each trial: cleared, or a new one where the driver cannot clear. */
final class TrialStream {
    private final Driver driver;
    private final String name;
    private final int partitions;
    private String current = "";
    private int made;

    /** @param name the name of the first stream; others have numbers behind it */
    TrialStream(Driver driver, String name, int partitions) {
        this.driver = driver;
        this.name = name;
        this.partitions = partitions;
    }

    /** What publishes to it, now that it is empty. */
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
