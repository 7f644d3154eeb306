/** Redis Streams as a system that the runner measures. */
@NullMarked
package io.eventsql.runner.drivers.redis;

import org.jspecify.annotations.NullMarked;
