/**
 * Publishing, from the call to the committed row: validate, route, batch, append. {@link Publisher} validates and routes,
 * {@link PublishQueue} forms batches, and {@link Appender} appends them.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.append;

import org.jspecify.annotations.NullMarked;
