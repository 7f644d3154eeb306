package io.eventsql.spring.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The application's {@link javax.sql.DataSource} is a new, empty database for this test class, on a real PostgreSQL that
 * is started once in this JVM, in seconds and without Docker. Whatever {@code spring.datasource.url} says does not count
 * then. For tests with {@code @SpringBootTest} and for slices of it; {@link EventSqlTest} has both.
 *
 * <p>It has no effect where {@code eventsql.shards} names databases: leave those to a profile that tests do not use.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
public @interface EmbeddedEventSql {
    /**
     * Whether commits survive a power cut. Tests are faster without; with {@code true} the database is as a good
     * production database is.
     */
    boolean durable() default false;
}
