package io.eventsql.eventsdb;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** The replication modes of a server: the number of standbys, and whether commits wait for them. */
public enum StandbyMode {
    /** No standby. */
    NONE("none", 0, "", ""),
    /** One asynchronous standby. */
    ASYNCHRONOUS("asynchronous", 1, "", "async"),
    /** One synchronous standby. A commit returns after the standby has flushed it. */
    SYNCHRONOUS("synchronous", 1, "FIRST 1 (%s)", "sync"),
    /** Two standbys. A commit returns after one of them has flushed it. */
    QUORUM("quorum", 2, "ANY 1 (%s)", "quorum");

    private final String label;
    private final int count;
    private final String synchronousNames;
    private final String syncState;

    StandbyMode(String label, int count, String synchronousNames, String syncState) {
        this.label = label;
        this.count = count;
        this.synchronousNames = synchronousNames;
        this.syncState = syncState;
    }

    /** Returns the name used by the launcher's option and in workload files. */
    public String label() {
        return label;
    }

    /** Returns the mode with the given name; empty if there is none. */
    public static Optional<StandbyMode> of(String label) {
        return Arrays.stream(values()).filter(mode -> mode.label.equals(label)).findFirst();
    }

    /** Returns the application names of the standbys. */
    List<String> names() {
        return IntStream.rangeClosed(1, count)
                .mapToObj(number -> "standby" + number)
                .toList();
    }

    /** Returns the value of {@code synchronous_standby_names}. */
    String synchronousStandbyNames() {
        return synchronousNames.formatted(String.join(", ", names()));
    }

    /** Returns the expected {@code pg_stat_replication.sync_state} of the standbys. */
    String syncState() {
        return syncState;
    }
}
