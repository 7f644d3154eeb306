/** Apache Kafka as a system that the runner measures. */
@NullMarked
package io.eventsql.runner.drivers.kafka;

import org.jspecify.annotations.NullMarked;
