package io.eventsql.runner.driver;

import java.util.Map;
import java.util.Optional;

/** Opens drivers of one kind. Found by {@link java.util.ServiceLoader}. */
public interface DriverProvider {

    /** Returns the name used in workload files: lower-case letters, digits and hyphens, such as {@code kafka}. */
    String name();

    /**
     * Returns the guarantees of the system as configured.
     *
     * @param environment the variables that describe its servers
     */
    Guarantees guarantees(Map<String, String> environment);

    /**
     * Connects to the system.
     *
     * @throws IllegalArgumentException if a setting is missing or invalid; the message names it
     * @throws Exception if the system is unavailable
     */
    Driver open(DriverSettings settings) throws Exception;

    /** Returns the plain client program of the system; empty if there is none. */
    default Optional<PlainProgram> plainProgram() {
        return Optional.empty();
    }
}
