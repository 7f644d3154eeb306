package io.eventsql.internal.shard;

import io.eventsql.internal.sql.Database;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Why databases are not open. Each reason is logged once. Thread-safe. */
final class OpenFailures {
    private static final Logger LOG = LoggerFactory.getLogger(OpenFailures.class);
    /** Pools say how long they have waited, and for how many connections. */
    private static final Pattern NUMBER = Pattern.compile("[0-9]+");

    /** What is known of one database. */
    private static final class Reasons {
        private final String label;
        private final Set<String> logged = new HashSet<>();
        private String last = "";

        Reasons(String label) {
            this.label = label;
        }
    }

    private final Map<Database, Reasons> unopened = new LinkedHashMap<>();

    /** Adds why a database could not be opened; logs it if it is new. */
    synchronized void add(Database database, OpenFailure failure) {
        Reasons reasons = unopened.computeIfAbsent(database, d -> new Reasons(failure.label()));
        reasons.last = failure.text();
        if (reasons.logged.add(NUMBER.matcher(reasons.last).replaceAll(""))) {
            LOG.error("Could not open {}", reasons.last);
        }
    }

    /** Adds why a database that could be opened was rejected, which the caller logs. */
    synchronized void addRejection(Database database, String reason) {
        unopened.computeIfAbsent(database, d -> new Reasons("database")).last = reason;
    }

    /** Records that a database is open. */
    synchronized void remove(Database database) {
        unopened.remove(database);
    }

    /** Returns the name of a database that could not be opened. */
    synchronized String label(Database database) {
        Reasons reasons = unopened.get(database);
        return reasons == null ? "database" : reasons.label;
    }

    /** Returns why databases are not open; empty if all are. */
    synchronized String text() {
        return unopened.values().stream().map(reasons -> reasons.last).collect(Collectors.joining("; "));
    }
}
