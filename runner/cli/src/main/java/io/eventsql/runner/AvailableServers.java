package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.spec.EnvironmentSpec;
import io.eventsql.runner.spec.RunSpec;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The servers that the environment variables name.
 *
 * @param server as a workload calls it
 * @param standbys as a workload calls them
 * @param databases may be empty
 */
record AvailableServers(String server, String standbys, List<DatabaseAddress> databases) {

    /** @throws io.eventsql.benchmark.settings.InvalidSettingException if a variable is wrong */
    static AvailableServers of(Map<String, String> environment) {
        Variables variables = new Variables(environment::get);
        boolean hasDatabases = variables.isSet("DB0_HOST") || variables.isSet("DB_URLS");
        return new AvailableServers(
                variables.text("EVENTSQL_SERVER", "postgres"),
                variables.text("EVENTSQL_STANDBYS", "none"),
                hasDatabases ? DatabaseVariables.read(variables) : List.of());
    }

    /** Why a run cannot be measured here; empty: it can. */
    Optional<String> mismatch(RunSpec run) {
        EnvironmentSpec needed = run.environment();
        if (needed.server().equals("none")) {
            return Optional.empty();
        }
        if (!needed.server().equals(server)) {
            return Optional.of("it needs the server " + needed.server() + ", but EVENTSQL_SERVER says " + server);
        }
        if (needed.isPostgres() && needed.databases() != databases.size()) {
            return Optional.of("it needs " + needed.databases() + " databases, but " + databases.size() + " are given");
        }
        if (!needed.standbys().equals(standbys)) {
            return Optional.of("it needs standbys " + needed.standbys() + ", but EVENTSQL_STANDBYS says " + standbys);
        }
        return Optional.empty();
    }
}
