package io.eventsql.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes a method of a class with {@link EventSqlListener} the handler of the events whose type its payload parameter has.
 * Parameters are those of a listener method.
 *
 * <p>An event goes to the method that takes its class, otherwise to the one that takes the most specific supertype,
 * otherwise to the default method. Without one, the listener's failure policy applies.
 *
 * <p>An event without a value goes to the method that takes a {@link Tombstone}. Without one, it goes where an event of its
 * stored type would, if it has one, otherwise to the default method, or to the only one.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface EventSqlHandler {
    /** Whether the method handles events that no other one takes, such as those of unknown types. At most one method. */
    boolean isDefault() default false;
}
