package io.eventsql.runner.driver;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a driver is opened with.
 *
 * @param options the workload file's {@code driver_options}
 * @param environment the environment variables that say where its servers are, such as {@code DB0_HOST}
 */
public record DriverSettings(Map<String, String> options, Map<String, String> environment) {

    public DriverSettings {
        options = Map.copyOf(options);
        environment = Map.copyOf(environment);
    }

    /**
     * A variable that must be there.
     *
     * @throws IllegalArgumentException if it is not, naming it
     */
    public String requiredVariable(String name) {
        String value = environment.get(name);
        if (value == null || value.isBlank()) {
            throw new IllegalArgumentException(name + " is needed in the environment, but is not set");
        }
        return value;
    }

    /** An option, or {@code otherwise} where the workload does not say. */
    public String option(String name, String otherwise) {
        @Nullable String value = options.get(name);
        return value == null ? otherwise : value;
    }
}
