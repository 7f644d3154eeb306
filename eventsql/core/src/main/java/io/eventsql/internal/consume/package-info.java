/**
 * From the row to the handler: fetch, dispatch, commit the offset.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.consume;

import org.jspecify.annotations.NullMarked;
