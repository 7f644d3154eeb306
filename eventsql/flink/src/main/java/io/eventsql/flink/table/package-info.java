/** The connector {@code eventsql} of Flink's Table API and SQL. */
@NullMarked
package io.eventsql.flink.table;

import org.jspecify.annotations.NullMarked;
