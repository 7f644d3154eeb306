package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What all commands share: the form of their help, the environment and their command line. */
@Command(
        mixinStandardHelpOptions = true,
        sortOptions = false,
        exitCodeListHeading = "%nExit codes:%n",
        footerHeading = "%nExamples:%n")
abstract class RunnerCommand implements Callable<Integer> {
    private final Map<String, String> environment;

    @Spec
    private @Nullable CommandSpec spec;

    RunnerCommand() {
        this(Map.of());
    }

    /** @param environment the environment variables that configure the servers */
    RunnerCommand(Map<String, String> environment) {
        this.environment = Map.copyOf(environment);
    }

    Map<String, String> environment() {
        return environment;
    }

    /** @throws ParameterException if a variable is missing or invalid; names it */
    List<DatabaseAddress> databases() {
        return databases(environment);
    }

    /** Returns the databases of other variables than those of the environment. */
    List<DatabaseAddress> databases(Map<String, String> variables) {
        return orInvalid(() -> DatabaseVariables.read(new Variables(variables::get)));
    }

    /** @throws ParameterException if a variable is invalid; names it */
    AvailableServers servers() {
        return orInvalid(() -> AvailableServers.of(environment));
    }

    private <T> T orInvalid(Supplier<T> read) {
        try {
            return read.get();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandLine(), e.getMessage(), e);
        }
    }

    CommandLine commandLine() {
        return Objects.requireNonNull(spec).commandLine();
    }
}
