/**
 * EventSQL in Spring applications: publish with {@link io.eventsql.spring.EventSqlTemplate}, which joins the current
 * transaction.
 */
@NullMarked
package io.eventsql.spring;

import org.jspecify.annotations.NullMarked;
