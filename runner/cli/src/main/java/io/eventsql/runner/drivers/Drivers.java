package io.eventsql.runner.drivers;

import io.eventsql.runner.driver.DriverProvider;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/** The drivers on the class path. */
public final class Drivers {
    private Drivers() {}

    /** Returns the driver with the given name. */
    public static Optional<DriverProvider> find(String name) {
        return ServiceLoader.load(DriverProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(provider -> provider.name().equals(name))
                .findFirst();
    }

    /** Returns all names in alphabetical order. */
    public static List<String> names() {
        return ServiceLoader.load(DriverProvider.class).stream()
                .map(provider -> provider.get().name())
                .sorted()
                .toList();
    }
}
