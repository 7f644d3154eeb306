package io.eventsql.runner.limits;

import io.eventsql.runner.spec.RunSpec;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A stream with a load: as the fields of a workload file say it.
 *
 * @param driver the driver that publishes to it and consumes it
 * @param options the {@code driver_options}
 * @param partitions its partitions
 * @param consumers its consumers
 * @param keys the number of different keys; 0 for events without keys
 * @param timeoutSeconds the maximum time to wait for the consumers
 */
record LoadedStream(
        String driver, Map<String, String> options, int partitions, int consumers, int keys, int timeoutSeconds) {
    private static final int PARTITIONS = 10;

    private static final int TIMEOUT_SECONDS = 120;

    /** Creates a stream of ten partitions without consumers. */
    static LoadedStream of(String driver) {
        return new LoadedStream(driver, Map.of(), PARTITIONS, 0, 0, TIMEOUT_SECONDS);
    }

    /** Creates a stream of the library, see {@link #of}. */
    static LoadedStream ofLibrary() {
        return of("eventsql");
    }

    LoadedStream with(String option, String value) {
        Map<String, String> more = new LinkedHashMap<>(options);
        more.put(option, value);
        return new LoadedStream(driver, more, partitions, consumers, keys, timeoutSeconds);
    }

    LoadedStream withPartitions(int number) {
        return new LoadedStream(driver, options, number, consumers, keys, timeoutSeconds);
    }

    LoadedStream withConsumers(int number) {
        return new LoadedStream(driver, options, partitions, number, keys, timeoutSeconds);
    }

    LoadedStream withKeys(int number) {
        return new LoadedStream(driver, options, partitions, consumers, number, timeoutSeconds);
    }

    LoadedStream withTimeoutSeconds(int seconds) {
        return new LoadedStream(driver, options, partitions, consumers, keys, seconds);
    }

    /** Returns it as a run whose phases are given elsewhere. */
    RunSpec run(String name) {
        return RunSpec.ofLoad(
                name,
                new RunSpec.SystemSpec(driver, options),
                new RunSpec.EventsSpec(0, keys),
                new RunSpec.StreamsSpec(1, partitions, consumers, 0, timeoutSeconds));
    }
}
