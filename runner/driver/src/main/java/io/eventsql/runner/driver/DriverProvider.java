package io.eventsql.runner.driver;

/** Opens drivers of one kind. Found by {@link java.util.ServiceLoader}. */
public interface DriverProvider {

    /** What a workload file calls it: lower-case letters, digits and hyphens, such as {@code kafka}. */
    String name();

    /** What it promises, and for which server and setting. */
    Guarantees guarantees();

    /**
     * Connects.
     *
     * @throws IllegalArgumentException if a setting is missing or wrong, naming it
     * @throws Exception if the system cannot be reached
     */
    Driver open(DriverSettings settings) throws Exception;
}
