package io.eventsql.runner;

import io.eventsql.runner.result.Comparison;
import io.eventsql.runner.result.JsonFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** Compares the results of several runs in one table. */
@Command(
        name = "compare",
        description = {
            "Prints a Markdown table of the results of several runs.",
            "Accepts runs of any kind and shows the guarantees of each driver. A run with several measured phases has one",
            "row per phase.",
            ""
        },
        exitCodeList = {"0:table written", "2:invalid input, such as a folder without results"},
        footer = {
            "  runner compare results/fan-out",
            "  runner compare results/rate/1000 results/rate/5000 --out results/rate/comparison.md"
        })
final class CompareCommand extends RunnerCommand {
    private static final String RESULT = "result.json";

    @Parameters(
            arity = "1..*",
            paramLabel = "DIR",
            description = "folders of runs, or folders that contain such folders")
    private List<Path> folders = new ArrayList<>();

    @Option(
            names = "--out",
            paramLabel = "FILE",
            description = "write the table to this file instead of standard output")
    private @Nullable Path out;

    @Override
    public Integer call() throws IOException {
        CommandLine commandLine = commandLine();
        Comparison comparison = new Comparison();
        for (Path folder : folders) {
            for (Path run : runs(folder, commandLine)) {
                comparison.add(run.getFileName().toString(), JsonFiles.readTree(run.resolve(RESULT)));
            }
        }
        String table = String.join("\n", comparison.markdown());
        Path file = out;
        if (file == null) {
            commandLine.getOut().println(table);
        } else {
            JsonFiles.write(file, table + "\n");
        }
        return Runner.OK;
    }

    private static List<Path> runs(Path folder, CommandLine commandLine) throws IOException {
        if (Files.isRegularFile(folder.resolve(RESULT))) {
            return List.of(folder.toAbsolutePath().normalize());
        }
        List<Path> runs = List.of();
        if (Files.isDirectory(folder)) {
            try (Stream<Path> inside = Files.list(folder)) {
                runs = inside.filter(run -> Files.isRegularFile(run.resolve(RESULT)))
                        .sorted()
                        .toList();
            }
        }
        if (runs.isEmpty()) {
            throw new ParameterException(commandLine, "No " + RESULT + " in " + folder);
        }
        return runs;
    }
}
