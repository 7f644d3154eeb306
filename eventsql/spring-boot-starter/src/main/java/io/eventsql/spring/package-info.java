/**
 * EventSQL in Spring applications: publish with {@link io.eventsql.spring.EventSqlTemplate}, which joins the current
 * transaction; handle with methods that have {@link io.eventsql.spring.EventSqlListener}.
 */
@NullMarked
package io.eventsql.spring;

import org.jspecify.annotations.NullMarked;
