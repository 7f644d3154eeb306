/** Publishing against a real database: how the publisher reacts to append outcomes, and its listeners. */
package io.eventsql.publish;
