package io.eventsql.runner.limits;

import java.sql.SQLException;
import java.time.Duration;

/** One way to append or to read, whose rate is compared with others. */
interface Variant {

    /** For people. */
    String name();

    /**
     * Goes as fast as it can for about so long, or until the run is stopped.
     *
     * @throws SQLException if the database refuses something
     * @throws IllegalStateException if an event could not be stored or read: then there is no rate
     */
    MeasuredInterval run(Duration time) throws SQLException;
}
