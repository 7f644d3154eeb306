/**
 * Streams of EventSQL as sinks of Apache Flink: {@link io.eventsql.flink.sink.EventSqlSink}.
 *
 * <p>The way of an event: {@code EventSerializer} → {@code EventEncoder}, which validates it, → {@code EventBuffer}, which
 * makes batches for the partitions that {@code KeyRoutes} finds. Exactly once, the batches are part of a checkpoint ({@code
 * CommittingWriter}, {@code BatchSerializer}) and are appended when it is complete ({@code BatchCommitter}); otherwise they are
 * appended at once ({@code AppendingWriter}). Both append by {@code BatchAppender}, which retries, on a {@code SinkDatabase} for
 * each shard.
 */
@NullMarked
package io.eventsql.flink.sink;

import org.jspecify.annotations.NullMarked;
