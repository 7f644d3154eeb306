package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonProperty;

/** The kinds of workload. */
public enum WorkloadKind {
    /** The main benchmark: runners publish, apps consume. */
    @JsonProperty("publish")
    PUBLISH,
    /** Consecutive phases of load, with consumers in this process. */
    @JsonProperty("phases")
    PHASES,
    /** A search for the highest rate at which a latency stays below a limit. */
    @JsonProperty("search")
    SEARCH,
    /** A repeated burst of events. */
    @JsonProperty("blast")
    BLAST,
    /** Durations by number of events. */
    @JsonProperty("sweep")
    SWEEP,
    /** Parts that show how close the library comes to the limits of PostgreSQL. */
    @JsonProperty("limits")
    LIMITS,
    /** Queries of Flink. They have a program of their own, so that the runner needs no Flink. */
    @JsonProperty("queries")
    QUERIES
}
