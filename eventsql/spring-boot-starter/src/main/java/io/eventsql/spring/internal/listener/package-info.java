/**
 * How annotated methods become consumers: the post-processor finds them, the factory checks them and reads their settings,
 * the registry starts and stops their containers.
 */
@NullMarked
package io.eventsql.spring.internal.listener;

import org.jspecify.annotations.NullMarked;
