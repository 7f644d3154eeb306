package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonProperty;

/** What a workload does. */
public enum WorkloadKind {
    /** The main experiment: runners that publish, and apps that consume. */
    @JsonProperty("publish")
    PUBLISH,
    /** Phases of load, one after the other, with the consumers in this process. */
    @JsonProperty("phases")
    PHASES,
    /** The highest rate at which a latency stays below a limit. */
    @JsonProperty("search")
    SEARCH,
    /** The same burst of events, again and again. */
    @JsonProperty("blast")
    BLAST,
    /** How long numbers of events take. */
    @JsonProperty("sweep")
    SWEEP
}
