package io.eventsql.internal.sql;

import java.util.List;
import java.util.regex.Matcher;

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

    /** Returns whether this is the schema that statements are written for. */
    boolean isWritten() {
        return prefix.equals(WRITTEN_PREFIX);
    }

    /**
     * Returns SQL that names this schema without quotes with the name in quotes, as {@link #sql} writes it. An alias of a table may
     * have the schema's name, so only the names of objects are qualified, and those that a function formats.
     *
     * @param objects the names of tables and functions in the schema
     */
    String quoted(String sql, List<String> objects) {
        return sql.replaceAll(
                "(?<![\\w\"$])" + name + "\\.(?=%|(?:" + String.join("|", objects) + ")\\b)",
                Matcher.quoteReplacement(prefix));
    }

    /**
     * Returns the statement with this schema's name. The name of a setting must not begin with that of the schema, because it
     * cannot be quoted.
     */
    public String sql(String statement) {
        return isWritten() ? statement : statement.replace(WRITTEN_PREFIX, prefix);
    }
}
