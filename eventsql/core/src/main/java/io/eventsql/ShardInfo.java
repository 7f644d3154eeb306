package io.eventsql;

import javax.sql.DataSource;

/**
 * One shard as this process sees it.
 *
 * @param number the shard's number, from 0, as it is recorded in the database
 * @param name its name, as it is recorded in the database
 * @param dataSource the data source that was found to be this shard
 */
public record ShardInfo(int number, String name, DataSource dataSource) {}
