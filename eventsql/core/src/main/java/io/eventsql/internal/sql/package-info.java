/**
 * Every SQL statement of the library: one class for each table, each statement whole, with a comment on the index and
 * the lock it relies on. Statements of more than one line are text blocks.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.sql;

import org.jspecify.annotations.NullMarked;
