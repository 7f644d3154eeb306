package io.eventsql.runner.sample;

import java.util.Collections;
import java.util.List;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/** Samples one source about once per second. For use by one thread. */
interface Probe extends AutoCloseable {

    /** Returns a probe of one number. */
    static Probe of(String column, LongFunction<@Nullable Double> sample) {
        return new Probe() {
            @Override
            public List<String> columns() {
                return List.of(column);
            }

            @Override
            public List<@Nullable Double> sample(long nowNanos) {
                return Collections.singletonList(sample.apply(nowNanos));
            }
        };
    }

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
