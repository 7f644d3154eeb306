package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One run of a workload, with all defaults filled in.
 *
 * @param name unique in its workload; also the name of its folder
 * @param kind what it does
 * @param environment the servers it needs
 * @param system what is measured
 * @param events what is published
 * @param streams where it goes and who consumes
 * @param phases of the kinds {@code phases} and {@code search}
 * @param search of the kind {@code search}
 * @param blast of the kind {@code blast}
 * @param sweep of the kind {@code sweep}
 * @param variables of the kind {@code publish}: what the environment holds besides
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record RunSpec(
        String name,
        WorkloadKind kind,
        EnvironmentSpec environment,
        @JsonUnwrapped SystemSpec system,
        EventsSpec events,
        @JsonUnwrapped StreamsSpec streams,
        List<PhaseSpec> phases,
        @Nullable SearchSpec search,
        @Nullable BlastSpec blast,
        @Nullable SweepSpec sweep,
        Map<String, String> variables) {

    /**
     * What is measured.
     *
     * @param driver the name of its driver
     * @param driverOptions what that driver is opened with
     */
    public record SystemSpec(String driver, Map<String, String> driverOptions) {}

    /**
     * Where events go and who consumes them.
     *
     * @param streams how many streams; calls go to them in turn
     * @param partitions of each stream
     * @param consumers of each stream
     * @param replayers consumers of each stream that read it from its start again and again
     * @param consumeTimeoutSeconds how long the consumers are waited for
     */
    public record StreamsSpec(int streams, int partitions, int consumers, int replayers, int consumeTimeoutSeconds) {}

    /** About how long it takes, seconds. */
    public long estimatedSeconds() {
        return DurationEstimate.seconds(this);
    }
}
