package io.eventsql.runner.driver;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a driver.
 *
 * @param options the {@code driver_options} of the workload file
 * @param environment the environment variables that configure its servers, such as {@code DB0_HOST}
 */
public record DriverSettings(Map<String, String> options, Map<String, String> environment) {

    public DriverSettings {
        options = Map.copyOf(options);
        environment = Map.copyOf(environment);
    }

    /**
     * Returns a required environment variable.
     *
     * @throws IllegalArgumentException if it is not set; the message names it
     */
    public String requiredVariable(String name) {
        String value = environment.get(name);
        if (value == null || value.isBlank()) {
            throw new IllegalArgumentException("Required environment variable " + name + " is not set");
        }
        return value;
    }

    /** Returns an option, or {@code otherwise} if the workload does not set it. */
    public String option(String name, String otherwise) {
        @Nullable String value = options.get(name);
        return value == null ? otherwise : value;
    }
}
