package io.eventsql.runner;

import io.eventsql.runner.sample.SampledProcess;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The processes to sample in addition to this one. */
final class ProcessesOption {
    @Option(
            names = "--process",
            paramLabel = "NAME=PID",
            split = ",",
            description = {
                "process to sample every second, including its children, such as database-0=1234;",
                "or a container: database-0=docker:CONTAINER; repeatable (environment: PROCESSES)"
            })
    private List<String> processes = new ArrayList<>();

    /** @throws ParameterException if a value is not a process; names the option */
    List<SampledProcess> read(CommandLine commandLine) {
        try {
            return processes.stream().map(SampledProcess::of).toList();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandLine, "--process (PROCESSES) " + e.getMessage(), e);
        }
    }
}
