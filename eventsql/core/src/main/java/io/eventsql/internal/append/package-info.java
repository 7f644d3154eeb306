/**
 * Publishing, from the call to the committed row: validate, route, batch, append. {@link Publisher} validates and routes,
 * {@link PublishQueue} forms batches, and {@link Appender} appends them with {@link BatchSender} until their outcome is
 * known.
 *
 * <p>Code of the application runs on no thread that appends or checks deadlines: {@link Continuations} completes the
 * futures of asynchronous calls, {@link PublishListeners} calls the listeners.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.append;

import org.jspecify.annotations.NullMarked;
