package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.Map;

/**
 * The servers a run needs.
 *
 * @param server one of {@code postgres}, {@code postgres-pgq}, {@code kafka}, {@code redis}, {@code none}
 * @param databases how many PostgreSQL servers; means something for these only
 * @param standbys of each of them: {@code none}, {@code asynchronous}, {@code synchronous} or {@code quorum}
 * @param serverOptions what the server is started with
 */
public record EnvironmentSpec(String server, int databases, String standbys, Map<String, String> serverOptions) {

    /** Whether its servers are PostgreSQL, so that their number matters. */
    @JsonIgnore
    public boolean isPostgres() {
        return server.startsWith("postgres");
    }
}
