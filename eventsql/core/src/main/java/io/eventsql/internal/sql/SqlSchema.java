package io.eventsql.internal.sql;

/**
 * The database schema that holds the library's tables. Statements are written for the schema {@code eventsql}; this
 * class replaces that name by another one. Thread-safe.
 */
public final class SqlSchema {
    private static final String WRITTEN_NAME = "eventsql";
    private static final String WRITTEN_PREFIX = WRITTEN_NAME + ".";

    private final String name;
    private final String prefix;

    /** @param name a validated identifier: lower-case letters, digits and underscores */
    public SqlSchema(String name) {
        this.name = name;
        // Quoted, because the name may be a keyword, such as "user".
        this.prefix = name.equals(WRITTEN_NAME) ? WRITTEN_PREFIX : quotedName() + ".";
    }

    public String name() {
        return name;
    }

    /** Returns the name as SQL. */
    String quotedName() {
        return "\"" + name + "\"";
    }

    /** Returns the statement with this schema's name. */
    public String sql(String statement) {
        return prefix.equals(WRITTEN_PREFIX) ? statement : statement.replace(WRITTEN_PREFIX, prefix);
    }

    /** Returns the name of the table that holds a stream's events. */
    static String eventsTable(String stream) {
        return "eventsql.events_" + stream;
    }

    /** Returns what the names of the tables of a stream's partitions begin with; the number of the partition follows. */
    static String partitionTablePrefix(String stream) {
        return eventsTable(stream) + "__p";
    }

    /** Returns the name of the table of one partition; its segments are its partitions. */
    static String partitionTable(String stream, int partition) {
        return partitionTablePrefix(stream) + partition;
    }

    /**
     * Returns what the names of the tables of a partition's segments begin with; the number of the segment follows.
     * Segment n holds the offsets from {@code n * segmentSize} up to the next.
     */
    static String segmentTablePrefix(String stream, int partition) {
        return partitionTable(stream, partition) + "_s";
    }
}
