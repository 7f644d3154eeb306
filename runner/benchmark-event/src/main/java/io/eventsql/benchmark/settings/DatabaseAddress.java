package io.eventsql.benchmark.settings;

/**
 * How a database is reached.
 *
 * @param jdbcUrl a PostgreSQL JDBC address
 * @param user the role
 * @param password the role's password; not part of {@link #toString()}
 */
public record DatabaseAddress(String jdbcUrl, String user, String password) {

    /** Without the password, and without the address's parameters, which may hold one too. */
    @Override
    public String toString() {
        return "DatabaseAddress[" + jdbcUrl.replaceFirst("\\?.*", "?…") + ", user=" + user + "]";
    }
}
