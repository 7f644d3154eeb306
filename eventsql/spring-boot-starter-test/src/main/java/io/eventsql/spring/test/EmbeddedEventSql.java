package io.eventsql.spring.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Gives the test class a new, empty database as the application's {@link javax.sql.DataSource}, on a real PostgreSQL that
 * starts once per JVM, in seconds and without Docker. It has precedence over {@code spring.datasource.*} and over other
 * {@code JdbcConnectionDetails}, such as those of a {@code @ServiceConnection}. For {@code @SpringBootTest} ({@link
 * EventSqlTest} combines the two) and for slices such as {@code @JdbcTest}.
 *
 * <p>A slice has the {@code DataSource} only. To publish in one, add EventSQL to it with {@code
 * @ImportAutoConfiguration({EventSqlAutoConfiguration.class, EventSqlTemplateAutoConfiguration.class})}.
 *
 * <p>Streams that do not exist are created when they are used, unless {@code eventsql.create-missing-streams} is set.
 *
 * <p>Each shard of {@code eventsql.shards} gets a new, empty database on the same server, too, instead of the one that is
 * configured, and no replica. It has no effect on {@code DataSource} beans that the application creates itself: create
 * those in a profile that tests do not activate.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
public @interface EmbeddedEventSql {
    /**
     * Whether commits survive a power cut. With {@code false}, tests are faster; with {@code true}, the database is
     * configured like one in production.
     */
    boolean durable() default false;
}
