/**
 * Every SQL statement of the library: one class for each table, each statement whole, with the index and the lock it relies on.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.sql;

import org.jspecify.annotations.NullMarked;
