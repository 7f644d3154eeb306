package io.eventsql.runner.database;

/**
 * Where a database is and who asks.
 *
 * @param jdbcUrl without user and password
 * @param user the role
 * @param password its password; may be empty
 */
public record DatabaseAddress(String jdbcUrl, String user, String password) {

    /** Without the password. */
    @Override
    public String toString() {
        return jdbcUrl + " as " + user;
    }
}
