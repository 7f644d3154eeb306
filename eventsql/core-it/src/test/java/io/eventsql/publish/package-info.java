/** Publishing against a real database: outcomes of appends, listeners, buffers. */
package io.eventsql.publish;
