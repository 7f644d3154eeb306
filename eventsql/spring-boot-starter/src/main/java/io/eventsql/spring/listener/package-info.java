/**
 * How annotated methods become consumers. An application uses {@link io.eventsql.spring.listener.EventSqlListenerRegistry}
 * and {@link io.eventsql.spring.listener.EventSqlListenerContainer} to look at them, stop and start them.
 */
@NullMarked
package io.eventsql.spring.listener;

import org.jspecify.annotations.NullMarked;
