package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.Workload;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The servers configured in the environment.
 *
 * @param server the kind of server, as in a workload's {@code environment.server}
 * @param standbys the replication mode, as in a workload's {@code environment.standbys}
 * @param databases may be empty
 */
record AvailableServers(String server, String standbys, List<DatabaseAddress> databases) {

    /** @throws io.eventsql.benchmark.settings.InvalidSettingException if a variable is invalid */
    static AvailableServers of(Map<String, String> environment) {
        Variables variables = new Variables(environment::get);
        boolean hasDatabases = variables.isSet("DB0_HOST") || variables.isSet("DB_URLS");
        return new AvailableServers(
                variables.text("EVENTSQL_SERVER", "postgres"),
                variables.text("EVENTSQL_STANDBYS", "none"),
                hasDatabases ? DatabaseVariables.read(variables) : List.of());
    }

    /** Returns the runs that can be measured on these servers, and reports why others cannot. */
    List<RunSpec> select(Workload workload, PrintWriter err) {
        List<RunSpec> runs = new ArrayList<>();
        for (RunSpec run : workload.runs()) {
            mismatch(run)
                    .ifPresentOrElse(
                            why -> err.println("Skipping run " + run.name() + ": " + why), () -> runs.add(run));
        }
        return runs;
    }

    /** Returns why a run cannot be measured on these servers; empty if it can. */
    private Optional<String> mismatch(RunSpec run) {
        RunSpec.EnvironmentSpec needed = run.environment();
        if (needed.server().equals("none")) {
            return Optional.empty();
        }
        if (!needed.server().equals(server)) {
            return Optional.of("requires server " + needed.server() + ", but EVENTSQL_SERVER is " + server);
        }
        if (needed.isPostgres() && needed.databases() != databases.size()) {
            return Optional.of(
                    "requires " + needed.databases() + " databases, but " + databases.size() + " are configured");
        }
        if (!needed.standbys().equals(standbys)) {
            return Optional.of("requires standbys " + needed.standbys() + ", but EVENTSQL_STANDBYS is " + standbys);
        }
        return Optional.empty();
    }
}
