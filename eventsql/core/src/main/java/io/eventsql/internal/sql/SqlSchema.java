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
}
