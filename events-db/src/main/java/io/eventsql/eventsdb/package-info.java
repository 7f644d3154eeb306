/**
 * Real PostgreSQL servers with EventSQL's settings, for running and testing without Docker. Not part of the library's
 * API: nothing here is promised to stay.
 */
@NullMarked
package io.eventsql.eventsdb;

import org.jspecify.annotations.NullMarked;
