/** The driver for Redis Streams. */
@NullMarked
package io.eventsql.runner.drivers.redis;

import org.jspecify.annotations.NullMarked;
