package io.eventsql.runner.database;

import io.eventsql.ShardInfo;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * Durability settings and version of a shard's server.
 *
 * @param shard the shard's number
 * @param fsync {@code on} or {@code off}
 * @param synchronousCommit {@code on}, {@code off}, {@code local}, {@code remote_write} or {@code remote_apply}
 * @param serverVersion the server version, such as {@code 18.1}
 */
public record ShardServerInfo(int shard, String fsync, String synchronousCommit, String serverVersion) {

    /** Queries the server as the publishing role. */
    public static ShardServerInfo read(ShardInfo shard) throws SQLException {
        try (Connection connection = shard.dataSource().getConnection()) {
            return new ShardServerInfo(
                    shard.number(),
                    DatabaseInfo.show(connection, "fsync"),
                    DatabaseInfo.show(connection, "synchronous_commit"),
                    DatabaseInfo.show(connection, "server_version"));
        }
    }
}
