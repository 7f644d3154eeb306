/**
 * How often frequent work is done, so that what has come in between shares it.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.pace;

import org.jspecify.annotations.NullMarked;
