/** PgQ, queues in PostgreSQL, as a system that the runner measures. */
@NullMarked
package io.eventsql.runner.drivers.pgq;

import org.jspecify.annotations.NullMarked;
