package io.eventsql.eventsdb;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Which servers keep a copy of another one, and whether its commits wait for them. */
public enum StandbyMode {
    /** No copy. */
    NONE("none", 0, "", ""),
    /** One copy, which commits do not wait for. */
    ASYNCHRONOUS("asynchronous", 1, "", "async"),
    /** One copy: a commit returns when it has flushed it too. */
    SYNCHRONOUS("synchronous", 1, "FIRST 1 (%s)", "sync"),
    /** Two copies: a commit returns when one of them has flushed it too. */
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

    /** As the launcher's option and workload files call it. */
    public String label() {
        return label;
    }

    /** The one with that word; empty if there is none. */
    public static Optional<StandbyMode> of(String label) {
        return Arrays.stream(values()).filter(mode -> mode.label.equals(label)).findFirst();
    }

    /** The names of the servers, by which the primary knows them. */
    List<String> names() {
        return IntStream.rangeClosed(1, count)
                .mapToObj(number -> "standby" + number)
                .toList();
    }

    /** The value of {@code synchronous_standby_names}. */
    String synchronousStandbyNames() {
        return synchronousNames.formatted(String.join(", ", names()));
    }

    /** What {@code pg_stat_replication.sync_state} says of each of them. */
    String syncState() {
        return syncState;
    }
}
