package io.eventsql.runner.driver;

/** Opens drivers of one kind. Found by {@link java.util.ServiceLoader}. */
public interface DriverProvider {

    /** Returns the name used in workload files: lower-case letters, digits and hyphens, such as {@code kafka}. */
    String name();

    /** Returns the guarantees of the system as configured. */
    Guarantees guarantees();

    /**
     * Connects to the system.
     *
     * @throws IllegalArgumentException if a setting is missing or invalid; the message names it
     * @throws Exception if the system is unavailable
     */
    Driver open(DriverSettings settings) throws Exception;
}
