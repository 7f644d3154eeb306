/**
 * Real PostgreSQL servers with EventSQL's settings, for running and testing without Docker. This is not part of the
 * library's API and may change at any time.
 */
@NullMarked
package io.eventsql.eventsdb;

import org.jspecify.annotations.NullMarked;
