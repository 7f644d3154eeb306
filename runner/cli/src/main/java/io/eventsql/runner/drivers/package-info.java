/**
 * The systems that the runner measures without anything on its class path besides itself: what runs on PostgreSQL.
 */
@NullMarked
package io.eventsql.runner.drivers;

import org.jspecify.annotations.NullMarked;
