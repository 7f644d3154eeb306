package io.eventsql.runner;

import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.IDefaultValueProvider;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Reads the default of each option from the environment: {@code EVENTS_RATE} for {@code --events-rate}. For options
 * with several values, the plural is accepted as well, such as {@code APP_URLS}. An empty variable counts as unset.
 */
final class EnvironmentDefaults implements IDefaultValueProvider {
    private final Map<String, String> environment;

    EnvironmentDefaults(Map<String, String> environment) {
        this.environment = Map.copyOf(environment);
    }

    /** Returns the environment variable of an option. */
    static String variable(String option) {
        return option.replaceFirst("^--", "").replace('-', '_').toUpperCase(Locale.ROOT);
    }

    @Override
    public @Nullable String defaultValue(ArgSpec argument) {
        if (!(argument instanceof OptionSpec option) || option.usageHelp() || option.versionHelp()) {
            return null;
        }
        String variable = variable(option.longestName());
        String value = value(variable);
        return value == null && option.isMultiValue() ? value(plural(variable)) : value;
    }

    private static String plural(String variable) {
        return variable + (variable.endsWith("S") ? "ES" : "S");
    }

    private @Nullable String value(String variable) {
        String value = environment.getOrDefault(variable, "").strip();
        return value.isEmpty() ? null : value;
    }
}
