/** The driver for Apache Kafka. */
@NullMarked
package io.eventsql.runner.drivers.kafka;

import org.jspecify.annotations.NullMarked;
