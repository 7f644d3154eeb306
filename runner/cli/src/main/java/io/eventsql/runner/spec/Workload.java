package io.eventsql.runner.spec;

import java.util.List;

/**
 * A workload with its runs.
 *
 * @param name the file's name without its ending
 * @param kind what its runs do
 * @param description one line for people
 * @param runs at least one
 */
public record Workload(String name, WorkloadKind kind, String description, List<RunSpec> runs) {}
