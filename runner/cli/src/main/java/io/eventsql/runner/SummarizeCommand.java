package io.eventsql.runner;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.RunnerResult;
import io.eventsql.runner.result.Summary;
import io.eventsql.runner.result.SummaryText;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Merges the results of several runners and the counts of the app into one result. */
@Command(
        name = "summarize",
        description = {
            "Merges the results of all runners and the counts of all apps into one result.",
            "The result includes a verdict on lost, duplicated, unordered, failed and late events.",
            "Each option can also be set in the environment: --app-url as APP_URL, and so on.",
            ""
        },
        exitCodeList = {
            "0:no event was lost, duplicated, out of order, failed or late",
            "1:otherwise; see the problems in the result",
            "2:invalid input"
        },
        footerHeading = "%nExample:%n",
        footer = {
            "  runner summarize --run ab12cd34 --runner-results results/local/now --out results/local/now/result.json"
        })
final class SummarizeCommand extends RunnerCommand {
    @Option(names = "--run", paramLabel = "ID", required = true, description = "id of the run")
    private String run = "";

    @Mixin
    private final AppOptions appOptions = new AppOptions();

    @Option(
            names = "--runner-results",
            paramLabel = "DIR",
            required = true,
            description = "folder with the runners' result files, runner-<number>.json")
    private Path runnerResults = Path.of("");

    @Option(
            names = "--out",
            paramLabel = "FILE",
            defaultValue = "result.json",
            description = "result file; report.txt is written to the same folder (default: ${DEFAULT-VALUE})")
    private Path out = Path.of("result.json");

    @Mixin
    private final ProvenanceOptions provenance = new ProvenanceOptions();

    @Option(names = "--workload", paramLabel = "NAME", description = "workload of the run, recorded in the result")
    private @Nullable String workload;

    @Option(names = "--cpus", paramLabel = "N", description = "processors of the machine (default: detected)")
    private @Nullable Integer cpus;

    @Option(
            names = "--recycled-wal-mb",
            paramLabel = "MB",
            defaultValue = "0",
            description = "WAL files preallocated in the databases, recorded in the result (default: ${DEFAULT-VALUE})")
    private int recycledWalMb;

    @Override
    public Integer call() throws IOException {
        CommandLine commandLine = commandLine();
        OptionValidator validator = new OptionValidator(commandLine);
        validator.require(
                BenchmarkEvent.isRun(run),
                "--run",
                "must be 8 lower-case hexadecimal characters, but is '" + run + "'");
        validator.require(
                Files.isDirectory(runnerResults), "--runner-results", "must be a folder, but is " + runnerResults);
        Summary summary = MainJob.summarize(
                read(validator),
                appOptions,
                new Summary.Provenance(
                        cpus == null ? Runtime.getRuntime().availableProcessors() : cpus,
                        recycledWalMb,
                        provenance.gitCommit(),
                        provenance.command(),
                        workload),
                out);
        SummaryText.of(summary).forEach(commandLine.getOut()::println);
        return summary.verdict().passed() ? Runner.OK : Runner.FAILED;
    }

    private List<RunnerResult> read(OptionValidator validator) throws IOException {
        List<RunnerResult> runners = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(runnerResults, "runner-*.json")) {
            for (Path file : files) {
                RunnerResult result = JsonFiles.read(file, RunnerResult.class);
                validator.require(
                        result.run().equals(run),
                        "--runner-results",
                        "must contain results of run " + run + " only, but " + file + " is of " + result.run());
                runners.add(result);
            }
        }
        if (runners.isEmpty()) {
            throw new IOException("No runner results in " + runnerResults);
        }
        return runners;
    }
}
