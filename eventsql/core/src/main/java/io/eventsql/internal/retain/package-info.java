/**
 * Manages what is stored of a stream: adds segments ahead of the head, removes those that have expired, compacts and clears
 * streams, and removes the rows of producers that have ended.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.retain;

import org.jspecify.annotations.NullMarked;
