/** Consumers as a group, in one process: members, failures, positions, handlers of every kind. */
package io.eventsql.group;
