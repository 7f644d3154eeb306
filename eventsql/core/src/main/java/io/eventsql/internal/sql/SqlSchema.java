package io.eventsql.internal.sql;


/**
 * The database schema that holds the library's tables. Statements are written for the schema {@code eventsql}; another
 * name takes its place here.
 *
 * @param name a validated identifier: lower-case letters, digits and underscores
 */
public record SqlSchema(String name) {
    private static final String WRITTEN = "eventsql.";

    /** The statement with this schema's name. */
    public String sql(String statement) {
        return WRITTEN.startsWith(name + ".") ? statement : statement.replace(WRITTEN, quoted() + ".");
    }

    /** The name as SQL: it may be a keyword, such as {@code user}. */
    String quoted() {
        return "\"" + name + "\"";
    }

    /** The table that holds a stream's events. */
    static String eventsTable(String stream) {
        return "eventsql.events_" + stream;
    }

    /** The table of one partition; its segments are its partitions. */
    static String partitionTable(String stream, int partition) {
        return eventsTable(stream) + "__p" + partition;
    }

    /** The table of one segment: the offsets from {@code segment * segmentSize} up to the next. */
    static String segmentTable(String stream, int partition, long segment) {
        return partitionTable(stream, partition) + "_s" + segment;
    }
}
