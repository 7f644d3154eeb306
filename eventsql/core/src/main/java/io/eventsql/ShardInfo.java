package io.eventsql;

import javax.sql.DataSource;

/**
 * A shard of the cluster, as seen by this process.
 *
 * @param number the shard's number, from 0, as recorded in its database
 * @param name the name given to {@link EventSql#builder(java.util.Map)}, otherwise the one recorded in its database
 * @param dataSource the data source whose database was identified as this shard
 */
public record ShardInfo(int number, String name, DataSource dataSource) {}
