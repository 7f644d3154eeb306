/** The drivers included in the runner: systems that run on PostgreSQL. */
@NullMarked
package io.eventsql.runner.drivers;

import org.jspecify.annotations.NullMarked;
