package io.eventsql.runner;

import io.eventsql.runner.report.Summary;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Where a result goes, and what only the caller knows about the run. */
final class ResultOptions {
    @Option(
            names = "--out",
            paramLabel = "FILE",
            defaultValue = "result.json",
            description = "where to write the result; report.txt goes beside it (default: ${DEFAULT-VALUE})")
    private Path out = Path.of("result.json");

    @Option(
            names = "--command",
            paramLabel = "TEXT",
            defaultValue = "unknown",
            description = "the command that started the run, for the result")
    private String command = "";

    @Option(
            names = "--git-commit",
            paramLabel = "HASH",
            defaultValue = "unknown",
            description = "what was measured, for the result")
    private String gitCommit = "";

    @Option(names = "--workload", paramLabel = "NAME", description = "the workload the run belongs to, for the result")
    private @Nullable String workload;

    @Option(names = "--cpus", paramLabel = "N", description = "processors of the machine (default: those found)")
    private @Nullable Integer cpus;

    @Option(
            names = "--recycled-wal-mb",
            paramLabel = "MB",
            defaultValue = "0",
            description =
                    "WAL files the databases were given before the run, for the result (default: ${DEFAULT-VALUE})")
    private int recycledWalMb;

    Path out() {
        return out;
    }

    Path report() {
        return out.resolveSibling("report.txt");
    }

    Path folder() {
        return Objects.requireNonNull(out.toAbsolutePath().getParent());
    }

    Summary.Provenance provenance() {
        int processors = cpus == null ? Runtime.getRuntime().availableProcessors() : cpus;
        return new Summary.Provenance(processors, recycledWalMb, gitCommit, command, workload);
    }
}
