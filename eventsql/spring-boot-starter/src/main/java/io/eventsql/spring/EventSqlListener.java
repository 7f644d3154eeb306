package io.eventsql.spring;

import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.RetryPolicy;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes a method of a singleton bean the handler of a consumer. Several processes with the same consumer share its
 * events.
 *
 * <p>The method returns nothing. For each event it may take
 *
 * <ul>
 *   <li>the payload, as any type the {@code EventSerializer} makes of it, {@code String} and {@code byte[]} included;
 *       {@code @Payload} marks it where it could be mistaken, {@code @Valid} has it validated
 *   <li>the whole {@link io.eventsql.StoredEvent} or its {@link io.eventsql.EventPosition}
 *   <li>{@code @Header("name")} a header, or one of {@link EventSqlHeaders}; {@code @Headers Map<String, String>} the
 *       event's own headers; {@code @Headers Map<String, Object>} and {@code MessageHeaders} both
 *   <li>{@code Message<Payload>}, Spring's own
 *   <li>with {@link #transactional()} the {@code java.sql.Connection} of the transaction
 * </ul>
 *
 * With {@link #batch()} it takes {@code List}s of these, one element for each event. A payload that cannot be made fails
 * its event for good: it is not tried again, {@link #failurePolicy()} applies at once.
 *
 * <p>Attributes that are texts may contain {@code ${placeholders}}; an empty one is not set. All from {@link
 * #concurrency()} on can be overridden by {@code eventsql.listeners.<id>.*}, and those not set have their defaults from
 * {@code eventsql.listener.*}, then from {@link ConsumerSpec}.
 */
@Target({ElementType.METHOD, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Repeatable(EventSqlListeners.class)
public @interface EventSqlListener {
    /** The stream it reads. */
    String stream();

    /** The consumer's name: its offsets are kept under it. An application has one listener for each stream and consumer. */
    String consumer();

    /** Names the listener in properties and in the registry; default: {@code <stream>-<consumer>}. */
    String id() default "";

    /** Whether the method takes many events at a time, as lists. */
    boolean batch() default false;

    /**
     * Whether the method works in a transaction of the application's transaction manager, which also commits the offset:
     * what it writes to the stream's database through {@code JdbcTemplate}, repositories or {@code @Transactional}
     * methods happens exactly once.
     */
    boolean transactional() default false;

    /**
     * For {@link #transactional()}: bean names of transaction managers, one for each shard; default: the application's
     * only or primary one.
     */
    String[] transactionManager() default {};

    /** {@link ConsumerSpec#concurrency()}: partitions handled at the same time. */
    String concurrency() default "";

    /** {@link ConsumerSpec#keyConcurrency()}: events of one partition handled at the same time, each of another key. */
    String keyConcurrency() default "";

    /** {@link ConsumerSpec#maxPartitions()}: the most partitions of one shard held by this process. */
    String maxPartitions() default "";

    /** {@link ConsumerSpec#pageEvents()}: the most events of a batch. */
    String pageEvents() default "";

    /** {@link ConsumerSpec#pageBytes()}, such as {@code 4MB}. */
    String pageBytes() default "";

    /** {@link ConsumerSpec#commitInterval()}, such as {@code 50ms}. */
    String commitInterval() default "";

    /**
     * {@link ConsumerSpec#startPosition()}: {@code earliest}, {@code latest}, a time such as {@code
     * 2026-01-31T12:00:00Z}, or an offset.
     */
    String start() default "";

    /** {@link ConsumerSpec#failurePolicy()}: a name of {@link FailurePolicy}, such as {@code park-key}. */
    String failurePolicy() default "";

    /** {@link ConsumerSpec#deadLetterStream()}. */
    String deadLetterStream() default "";

    /** {@link ConsumerSpec#outOfRangePolicy()}: a name of {@link OutOfRangePolicy}. */
    String outOfRangePolicy() default "";

    /** {@link RetryPolicy#maxAttempts()}. */
    String attempts() default "";

    /** {@link RetryPolicy#initialDelay()}, such as {@code 100ms}. */
    String retryDelayMin() default "";

    /** {@link RetryPolicy#maxDelay()}, such as {@code 30s}. */
    String retryDelayMax() default "";

    /** {@link RetryPolicy#retryable()}. */
    Class<? extends Throwable>[] retryable() default {};

    /** {@link RetryPolicy#fatal()}. */
    Class<? extends Throwable>[] fatal() default {};

    /** {@link ConsumerSpec#handlerTimeout()}, such as {@code 5m}. */
    String handlerTimeout() default "";

    /** Whether it starts with the application; otherwise by the registry. Default {@code true}. */
    String autoStartup() default "";
}
