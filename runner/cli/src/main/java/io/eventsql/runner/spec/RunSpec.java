package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One run of a workload, with all defaults filled in.
 *
 * @param name the name, unique in the workload; also the name of the run's folder
 * @param kind the kind of workload
 * @param environment the required servers
 * @param system the measured system
 * @param events the published events
 * @param streams the streams and their consumers
 * @param phases the phases, for kinds {@code phases} and {@code search}
 * @param search the search, for kind {@code search}
 * @param blast the burst, for kind {@code blast}
 * @param sweep the sweep, for kind {@code sweep}
 * @param limits the parts and their numbers, for kind {@code limits}
 * @param variables additional environment variables, for kind {@code publish}
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
        @Nullable LimitsSpec limits,
        Map<String, String> variables) {

    /**
     * The servers that a run requires.
     *
     * @param server one of {@code postgres}, {@code postgres-pgq}, {@code kafka}, {@code redis},
     *     {@code nats}, {@code none}
     * @param databases the number of PostgreSQL servers; ignored for other servers
     * @param standbys the replication mode of each database: {@code none}, {@code asynchronous}, {@code synchronous} or
     *     {@code quorum}
     * @param serverOptions the options with which the server starts
     */
    public record EnvironmentSpec(String server, int databases, String standbys, Map<String, String> serverOptions) {
        /** One PostgreSQL server without standbys. */
        public static final EnvironmentSpec ONE_DATABASE = new EnvironmentSpec("postgres", 1, "none", Map.of());

        /** Returns whether the servers are PostgreSQL, so that their number matters. */
        @JsonIgnore
        public boolean isPostgres() {
            return server.startsWith("postgres");
        }
    }

    /**
     * The events of a run.
     *
     * @param bytes the exact size of a value; 0 for the {@code account_created} event of about 230 bytes
     * @param keys the number of distinct keys; 0 for events without keys
     */
    public record EventsSpec(int bytes, int keys) {}

    /**
     * A search for the highest rate at which a latency stays below a limit.
     *
     * @param latency the limited latency
     * @param percentile the limited percentile, above 0 and up to 100
     * @param limitMs the limit in milliseconds
     * @param fromRate the lowest rate to try, in events/s
     * @param toRate the highest rate to try, in events/s
     * @param precision the relative distance between the highest sustained and the lowest failed rate at which the search
     *     ends
     */
    public record SearchSpec(
            Latency latency, double percentile, double limitMs, long fromRate, long toRate, double precision) {

        /** The latencies that a search can limit. */
        public enum Latency {
            /** The time from the intended send to the acknowledgement. */
            @JsonProperty("publish")
            PUBLISH,
            /** The time from the intended send to the consumer. */
            @JsonProperty("end_to_end")
            END_TO_END
        }
    }

    /**
     * A repeated burst of messages.
     *
     * @param messages the events of a burst
     * @param repeats the number of bursts
     * @param capBytes the maximum bytes of a burst; limits the number of large messages
     */
    public record BlastSpec(int messages, int repeats, long capBytes) {}

    /**
     * Several trials for each of several numbers of events.
     *
     * @param eventCounts the numbers of events
     * @param trials the trials per number of events
     * @param bufferBytes the bytes of event values per call
     * @param waiting whether each call completes before the next one starts
     */
    public record SweepSpec(List<Integer> eventCounts, int trials, int bufferBytes, boolean waiting) {}

    /**
     * The measured system.
     *
     * @param driver the name of its driver
     * @param driverOptions the options with which the driver is opened
     */
    public record SystemSpec(String driver, Map<String, String> driverOptions) {}

    /**
     * The streams of a run and their consumers.
     *
     * @param streams the number of streams, called in rotation
     * @param partitions the partitions of each stream
     * @param consumers the consumers of each stream
     * @param replayers the consumers of each stream that repeatedly read it from the start
     * @param consumeTimeoutSeconds the maximum time to wait for the consumers
     */
    public record StreamsSpec(int streams, int partitions, int consumers, int replayers, int consumeTimeoutSeconds) {}

    /** Returns a load of a limits run on one stream, whose phases are given elsewhere. */
    public static RunSpec ofLoad(String name, SystemSpec system, EventsSpec events, StreamsSpec streams) {
        return onOneDatabase(name, WorkloadKind.LIMITS, system, events, streams);
    }

    /**
     * Returns a run of queries on one database.
     *
     * @param driver the engine
     * @param options what it was asked for
     */
    public static RunSpec ofQueries(String name, String driver, Map<String, String> options) {
        return onOneDatabase(
                name,
                WorkloadKind.QUERIES,
                new SystemSpec(driver, options),
                new EventsSpec(0, 0),
                new StreamsSpec(1, 4, 0, 0, 0));
    }

    private static RunSpec onOneDatabase(
            String name, WorkloadKind kind, SystemSpec system, EventsSpec events, StreamsSpec streams) {
        EnvironmentSpec database = EnvironmentSpec.ONE_DATABASE;
        return new RunSpec(name, kind, database, system, events, streams, List.of(), null, null, null, null, Map.of());
    }

    /** Returns the estimated duration in seconds. */
    public long estimatedSeconds() {
        return DurationEstimate.seconds(this);
    }
}
