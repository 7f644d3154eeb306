/**
 * Benchmarks of how close the library comes to the limits of PostgreSQL, and of properties that depend on its query
 * plans and tables. Each is a part of a run on one database, and records its figures into a {@link
 * io.eventsql.runner.result.ResultPart}. Contains SQL that bypasses the library and depends on its tables.
 */
@NullMarked
package io.eventsql.runner.limits;

import org.jspecify.annotations.NullMarked;
