/** Consumers in one process: handlers, failure policies, partition assignment, positions and control. */
package io.eventsql.consume;
