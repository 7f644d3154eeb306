package io.eventsql.benchmark.settings;

/**
 * The address and credentials of a database.
 *
 * @param jdbcUrl a PostgreSQL JDBC URL
 * @param user the database role
 * @param password the password of the role, omitted from {@link #toString()}
 */
public record DatabaseAddress(String jdbcUrl, String user, String password) {

    /** Omits the password and the parameters of the URL, which may contain one as well. */
    @Override
    public String toString() {
        return "DatabaseAddress[" + jdbcUrl.replaceFirst("\\?.*", "?…") + ", user=" + user + "]";
    }
}
