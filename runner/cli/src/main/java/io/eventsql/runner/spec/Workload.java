package io.eventsql.runner.spec;

import java.util.List;

/**
 * A workload with its runs.
 *
 * @param name the file name without extension
 * @param kind the kind of its runs
 * @param description a one-line description
 * @param runs the runs, at least one
 */
public record Workload(String name, WorkloadKind kind, String description, List<RunSpec> runs) {}
