package io.eventsql.runner;

import picocli.CommandLine.Option;

/** Metadata of a result that only the caller knows. */
final class ProvenanceOptions {
    @Option(
            names = "--command",
            paramLabel = "TEXT",
            defaultValue = "unknown",
            description = "command that started the run, recorded in the result")
    private String command = "";

    @Option(
            names = "--git-commit",
            paramLabel = "HASH",
            defaultValue = "unknown",
            description = "measured Git commit, recorded in the result")
    private String gitCommit = "";

    String command() {
        return command;
    }

    String gitCommit() {
        return gitCommit;
    }
}
