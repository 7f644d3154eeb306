/** Tests of versions of keys, of publishing that expects one, and of reading the events of a key. */
package io.eventsql.version;
