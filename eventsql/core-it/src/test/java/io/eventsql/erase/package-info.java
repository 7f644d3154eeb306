/** Erasing the values of a key's events: what is erased, what remains, and what happens at the same time. */
package io.eventsql.erase;
