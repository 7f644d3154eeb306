package io.eventsql.runner.sample;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Looks at one thing about once a second. For one thread. */
interface Probe extends AutoCloseable {

    /** The names of its columns, such as {@code database-0.cpu_cores}. */
    List<String> columns();

    /**
     * Looks.
     *
     * @param nowNanos the time, on the monotonic clock
     * @return a value for each column; {@code null} where there is none, as for rates at the first look
     * @throws Exception if it cannot be seen
     */
    List<@Nullable Double> sample(long nowNanos) throws Exception;

    @Override
    default void close() {}
}
