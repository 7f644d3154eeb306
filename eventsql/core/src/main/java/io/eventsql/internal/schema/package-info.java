/**
 * Migrates a database's schema to the version this library needs.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.schema;

import org.jspecify.annotations.NullMarked;
