/** The driver for pgmq. */
@NullMarked
package io.eventsql.runner.drivers.pgmq;

import org.jspecify.annotations.NullMarked;
