package io.eventsql.runner;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.ParameterException;

/** The command line of the benchmark runner. */
@Command(
        name = "runner",
        mixinStandardHelpOptions = true,
        version = "EventSQL runner",
        subcommands = HelpCommand.class,
        description = {
            "Publishes events, measures throughput and latency, and accounts for every event.",
            "`publish` is the default command."
        },
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:all events published and consumed",
            "1:an event was lost, duplicated, out of order, failed or late, or the run aborted",
            "2:invalid input"
        },
        footerHeading = "%nExamples:%n",
        footer = {
            "  runner --help",
            "  runner publish --help",
            "  runner summarize --help",
            "  runner list",
            "  runner plan fan-out",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner run fan-out --out results/fan-out",
            "  runner plain --help",
            "  runner report results/fan-out/1-consumer",
            "  runner compare results/fan-out",
            "  runner clear --help",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner publish --events-rate 1000 --events-to-publish 60000",
        })
final class Runner {
    static final int OK = 0;
    static final int FAILED = 1;
    static final int INVALID_INPUT = 2;

    private Runner() {}

    public static void main(String[] arguments) {
        System.exit(commandLine(System.getenv()).execute(withCommand(arguments)));
    }

    /** Returns the command line for the given environment variables. */
    static CommandLine commandLine(Map<String, String> environment) {
        EnvironmentDefaults defaults = new EnvironmentDefaults(environment);
        CommandLine runner = new CommandLine(new Runner());
        Stream.of(
                        new CommandLine(new PublishCommand(environment)),
                        new CommandLine(new SummarizeCommand()),
                        new CommandLine(new ListCommand()),
                        new CommandLine(new PlanCommand()),
                        new CommandLine(new RunCommand(environment)),
                        new CommandLine(new PlainCommand(environment)),
                        new CommandLine(new ReportCommand()),
                        new CommandLine(new CompareCommand()))
                .forEach(command -> runner.addSubcommand(command.setDefaultValueProvider(defaults)));
        return runner.addSubcommand(new CommandLine(new ClearCommand(environment)))
                .setUsageHelpWidth(110)
                .setParameterExceptionHandler(Runner::invalidInput)
                .setExecutionExceptionHandler((failure, commandLine, result) -> failed(failure, commandLine));
    }

    /** Adds the default command {@code publish} where none is given. */
    static String[] withCommand(String[] arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        boolean needsDefault = all.isEmpty()
                || (all.getFirst().startsWith("-")
                        && !List.of("-h", "--help", "-V", "--version").contains(all.getFirst()));
        if (needsDefault) {
            all.addFirst("publish");
        }
        return all.toArray(String[]::new);
    }

    private static int invalidInput(ParameterException wrong, String[] arguments) {
        PrintWriter err = wrong.getCommandLine().getErr();
        err.println(wrong.getMessage());
        err.println("Try '" + wrong.getCommandLine().getCommandSpec().qualifiedName() + " --help'.");
        return INVALID_INPUT;
    }

    private static int failed(Exception failure, CommandLine commandLine) {
        commandLine.getErr().println("Run aborted: " + failure);
        failure.printStackTrace(commandLine.getErr());
        return FAILED;
    }
}
