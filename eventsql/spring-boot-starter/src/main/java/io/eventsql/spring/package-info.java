/**
 * EventSQL in Spring applications. Publish with {@link io.eventsql.spring.EventSqlTemplate}, which joins the current
 * transaction; handle events in methods with {@link io.eventsql.spring.EventSqlListener}.
 *
 * <p>This package is the starter's public API, together with {@code io.eventsql.spring.test} and the names of the
 * auto-configuration classes in {@code io.eventsql.spring.boot}. {@code io.eventsql.spring.internal} may change in any
 * release.
 */
@NullMarked
package io.eventsql.spring;

import org.jspecify.annotations.NullMarked;
