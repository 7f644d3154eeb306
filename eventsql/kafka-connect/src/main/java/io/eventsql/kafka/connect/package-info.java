/**
 * Streams of EventSQL as sources of Kafka Connect. {@link io.eventsql.kafka.connect.EventSqlSourceConnector} is the connector
 * to be configured; nothing here is called by applications. Parameters and return values are never {@code null} unless
 * annotated {@code @Nullable}.
 */
@NullMarked
package io.eventsql.kafka.connect;

import org.jspecify.annotations.NullMarked;
