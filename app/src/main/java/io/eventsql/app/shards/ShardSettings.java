package io.eventsql.app.shards;

/**
 * How one shard's database is reached.
 *
 * @param jdbcUrl a PostgreSQL JDBC address
 * @param user the role
 * @param password the role's password; not part of {@link #toString()}
 */
public record ShardSettings(String jdbcUrl, String user, String password) {

    /** Without the password, and without the address's parameters, which may hold one too. */
    @Override
    public String toString() {
        return "ShardSettings[" + jdbcUrl.replaceFirst("\\?.*", "?…") + ", user=" + user + "]";
    }
}
