/** Publishing inside the application's transaction: the outbox, its tables and its relay. */
package io.eventsql.outbox;
