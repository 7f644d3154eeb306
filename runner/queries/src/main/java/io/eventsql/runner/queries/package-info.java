/**
 * Queries of Apache Flink over a stream of positions: what the files in {@code runner/queries/sql} return is compared with a batch
 * computation in SQL, and their throughput and latency are measured.
 */
@NullMarked
package io.eventsql.runner.queries;

import org.jspecify.annotations.NullMarked;
