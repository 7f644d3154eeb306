/**
 * Streams of EventSQL as sources of Apache Flink.
 *
 * <p>{@link io.eventsql.flink.EventSqlSource} is the source for DataStream programs. SQL uses the connector {@code eventsql}
 * ({@link io.eventsql.flink.table.EventSqlTableFactory}).
 */
@NullMarked
package io.eventsql.flink;

import org.jspecify.annotations.NullMarked;
