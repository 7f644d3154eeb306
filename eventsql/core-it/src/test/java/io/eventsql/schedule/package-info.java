/** Events scheduled for a time: scheduling, cancelling, and appending them when they are due. */
package io.eventsql.schedule;
