/** The driver for NATS JetStream. */
@NullMarked
package io.eventsql.runner.drivers.nats;

import org.jspecify.annotations.NullMarked;
