/**
 * Wake-up signals: notifies the consumers of this and other processes that there are events to fetch.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.wake;

import org.jspecify.annotations.NullMarked;
