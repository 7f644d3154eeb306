package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.Map;

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
