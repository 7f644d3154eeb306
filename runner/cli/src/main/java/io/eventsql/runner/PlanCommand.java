package io.eventsql.runner;

import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.Workload;
import io.eventsql.runner.spec.WorkloadKind;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Prints the requirements of a workload's runs for scripts. */
@Command(
        name = "plan",
        description = {
            "Prints the requirements of a workload's runs as JSON.",
            "For each run: servers, variables and estimated duration in seconds.",
            ""
        },
        exitCodeList = {"0:printed", "2:invalid input"},
        footer = {"  runner plan fan-out", "  runner plan stress --only reading --set phases.1.seconds=10"})
final class PlanCommand extends RunnerCommand {

    /** The printed JSON. */
    private record Plan(String workload, WorkloadKind kind, String description, List<PlannedRun> runs) {}

    private record PlannedRun(
            String name,
            WorkloadKind kind,
            RunSpec.EnvironmentSpec environment,
            String driver,
            Map<String, String> variables,
            long seconds) {

        static PlannedRun of(RunSpec run) {
            return new PlannedRun(
                    run.name(),
                    run.kind(),
                    run.environment(),
                    run.system().driver(),
                    run.variables(),
                    run.estimatedSeconds());
        }
    }

    @Mixin
    private final WorkloadOptions options = new WorkloadOptions();

    @Override
    public Integer call() throws IOException {
        CommandLine commandLine = commandLine();
        Workload workload = options.read(commandLine);
        Plan plan = new Plan(
                workload.name(),
                workload.kind(),
                workload.description(),
                workload.runs().stream().map(PlannedRun::of).toList());
        commandLine.getOut().println(JsonFiles.toJson(plan));
        return Runner.OK;
    }
}
