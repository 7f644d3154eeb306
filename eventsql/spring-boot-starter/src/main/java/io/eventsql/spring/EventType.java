package io.eventsql.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The name and the version that are stored with events of a class, in the headers {@link EventTypes#TYPE_HEADER} and
 * {@link EventTypes#VERSION_HEADER}. Without this annotation the name is the simple name of the class, and the version 1.
 *
 * <p>Spring Boot finds annotated classes in the application's packages and registers them in {@link EventTypes}.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface EventType {
    /** The name, such as {@code order-placed}, unique among the application's types; default: the simple name of the class. */
    String value() default "";

    /**
     * The version of the payload, 1 or more. Raise it with an incompatible change of the class, and add an {@link
     * EventUpcaster} that converts the previous version to this one.
     */
    int version() default 1;

    /** Further names under which events of this class are stored, such as the one it had before. They are only read. */
    String[] formerNames() default {};
}
