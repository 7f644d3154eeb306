package io.eventsql.runner;

import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;

/** Rejects options out of range with a message that names the option, its environment variable and the limit. */
final class OptionValidator {
    private final CommandLine commandLine;

    OptionValidator(CommandLine commandLine) {
        this.commandLine = commandLine;
    }

    void requireRange(String option, long value, long min, long max) {
        require(value >= min && value <= max, option, "must be between " + min + " and " + max + ", but is " + value);
    }

    /** Requires what the library requires of the name of a stream. */
    String requireStreamName(String option, String name) {
        try {
            return StreamSpec.of(name).name();
        } catch (InvalidInputException e) {
            throw invalid(
                    option, String.valueOf(e.getMessage()).substring(e.field().length() + 1));
        }
    }

    void require(boolean condition, String option, String problem) {
        if (!condition) {
            throw invalid(option, problem);
        }
    }

    ParameterException invalid(String option, String problem) {
        return new ParameterException(
                commandLine, option + " (" + EnvironmentDefaults.variable(option) + ") " + problem);
    }
}
