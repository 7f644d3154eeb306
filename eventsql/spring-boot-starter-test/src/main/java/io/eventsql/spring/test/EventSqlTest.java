package io.eventsql.spring.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.core.annotation.AliasFor;

/**
 * A test of the whole application, by default without a web server, on a database of its own; see {@link
 * EmbeddedEventSql}:
 *
 * <pre>{@code
 * @EventSqlTest
 * class MailerTest {
 *     @Autowired Orders orders;
 *     @Autowired EventSqlTestSupport events;
 *
 *     @Test
 *     void order_placed_isMailed() {
 *         orders.place(new OrderPlaced("4711"));
 *         events.awaitHandled("orders", "mailer");
 *         …
 *     }
 * }
 * }</pre>
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@SpringBootTest
@EmbeddedEventSql
public @interface EventSqlTest {
    /** The application's configuration; by default found as {@link SpringBootTest} does. */
    @AliasFor(annotation = SpringBootTest.class)
    Class<?>[] classes() default {};

    /** Properties as {@code key=value}. */
    @AliasFor(annotation = SpringBootTest.class)
    String[] properties() default {};

    /** The web environment; none by default. */
    @AliasFor(annotation = SpringBootTest.class)
    SpringBootTest.WebEnvironment webEnvironment() default SpringBootTest.WebEnvironment.NONE;

    /** As {@link EmbeddedEventSql#durable()}. */
    @AliasFor(annotation = EmbeddedEventSql.class)
    boolean durable() default false;
}
