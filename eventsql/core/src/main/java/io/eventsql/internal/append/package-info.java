/**
 * From publish to the committed row: validate, route, batch, append.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.append;

import org.jspecify.annotations.NullMarked;
