/** The driver for PgQ, queues in PostgreSQL. */
@NullMarked
package io.eventsql.runner.drivers.pgq;

import org.jspecify.annotations.NullMarked;
