package io.eventsql.runner;

import io.eventsql.runner.report.Summary;
import io.eventsql.runner.result.RunResult;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The output file of a result and metadata that only the caller knows. */
final class ResultOptions {
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

    Path out() {
        return out;
    }

    String command() {
        return provenance.command();
    }

    String gitCommit() {
        return provenance.gitCommit();
    }

    private int processors() {
        return cpus == null ? Runtime.getRuntime().availableProcessors() : cpus;
    }

    RunResult.Machine machine() {
        return RunResult.Machine.ofThis(processors(), recycledWalMb == 0 ? null : recycledWalMb);
    }

    Summary.Provenance provenance() {
        return new Summary.Provenance(processors(), recycledWalMb, gitCommit(), command(), workload);
    }
}
