package io.eventsql.runner.sample;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Samples one source about once per second. For use by one thread. */
interface Probe extends AutoCloseable {

    /** Returns the names of its columns, such as {@code database-0.cpu_cores}. */
    List<String> columns();

    /**
     * Takes a sample.
     *
     * @param nowNanos the time on the monotonic clock
     * @return a value for each column; {@code null} if unknown, as for rates in the first sample
     * @throws Exception if the source cannot be read
     */
    List<@Nullable Double> sample(long nowNanos) throws Exception;

    /** Returns the CPU time that its samples have taken in other processes so far, in nanoseconds. */
    default long otherCpuNanos() {
        return 0;
    }

    @Override
    default void close() {}
}
