package io.eventsql.spring;

import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.MissingEventPolicy;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.RetryPolicy;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Repeatable;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes a method of a singleton bean the handler of a consumer; on a class, its methods with {@link EventSqlHandler}, each
 * for events of one type. Processes with the same consumer share its events.
 *
 * <p>The method returns nothing. Its parameters may be
 *
 * <ul>
 *   <li>the payload, of any type that the {@code EventSerializer} can deserialize, {@code String} and {@code byte[]}
 *       included, {@code Object} for any registered one; {@code @Payload} marks it where it is ambiguous,
 *       {@code @Valid} validates it
 *   <li>{@link Tombstone}: the method takes events without a value alone
 *   <li>the whole {@link io.eventsql.StoredEvent} or its {@link io.eventsql.EventPosition}
 *   <li>{@code @Header("name")}: a header, or one of {@link EventSqlHeaders}; {@code @Headers Map<String, String>}: the
 *       event's own headers; {@code @Headers Map<String, Object>} and {@code MessageHeaders}: both
 *   <li>{@code Message<Payload>}, Spring's own
 *   <li>with {@link #transactional()}, the {@code java.sql.Connection} of the transaction
 * </ul>
 *
 * With {@link #batch()} it takes {@code List}s of these, with one element for each event. An event of another type
 * than the payload's ({@link EventTypes}), or whose payload cannot be deserialized, is not retried: {@link #failurePolicy()}
 * applies at once. So it does for an event without a value ({@link io.eventsql.Event#tombstone}), unless the payload may be
 * missing: {@code @Payload(required = false)}, {@code @Nullable} or {@code Optional}. A {@code StoredEvent} and a CloudEvent,
 * which has no data then, take both.
 *
 * <p>Attributes of type {@code String} may contain {@code ${placeholders}}; an empty one is not set. The properties {@code
 * eventsql.listeners.<id>.*} override the attributes from {@link #concurrency()} on; the defaults of those not set are the
 * properties {@code eventsql.listener.*}, then those of {@link ConsumerSpec}.
 */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Repeatable(EventSqlListeners.class)
public @interface EventSqlListener {
    /** The consumer's stream. */
    String stream();

    /** The consumer's name, under which its offsets are stored. Each stream and consumer has one listener in an application. */
    String consumer();

    /** The listener's id in properties and in the registry; default: {@code <stream>-<consumer>}. */
    String id() default "";

    /** Whether the method takes batches of events, as lists. */
    boolean batch() default false;

    /**
     * Whether the method runs in a transaction of the application's transaction manager, which also commits the offset:
     * its writes to the stream's database through {@code JdbcTemplate}, repositories or {@code @Transactional} methods are
     * committed exactly once.
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

    /** {@link ConsumerSpec#maxPartitions()}: maximum number of partitions of one shard assigned to this process. */
    String maxPartitions() default "";

    /** {@link ConsumerSpec#pageEvents()}: maximum number of events in a batch. */
    String batchSize() default "";

    /** {@link ConsumerSpec#pageBytes()}, such as {@code 4MB}. */
    String pageBytes() default "";

    /** {@link ConsumerSpec#commitInterval()}, such as {@code 50ms}. */
    String commitInterval() default "";

    /**
     * {@link ConsumerSpec#startPosition()}: {@code earliest}, {@code latest}, a time such as {@code
     * 2026-01-31T12:00:00Z}, or an offset.
     */
    String startPosition() default "";

    /** {@link ConsumerSpec#failurePolicy()}: a name of {@link FailurePolicy}, such as {@code park-key}. */
    String failurePolicy() default "";

    /** {@link ConsumerSpec#deadLetterStream()}. */
    String deadLetterStream() default "";

    /** {@link ConsumerSpec#outOfRangePolicy()}: a name of {@link OutOfRangePolicy}. */
    String outOfRangePolicy() default "";

    /** {@link ConsumerSpec#circuitBreaker()}: failures in a row after which a partition pauses; 0: never. */
    String circuitBreaker() default "";

    /** {@link ConsumerSpec#missingEventPolicy()}: a name of {@link MissingEventPolicy}. */
    String missingEventPolicy() default "";

    /** {@link ConsumerSpec#readFrom()}: {@code primary} or {@code replica}. */
    String readFrom() default "";

    /** {@link RetryPolicy#maxAttempts()}; default: unlimited with {@code stop}, otherwise 10. */
    String maxAttempts() default "";

    /** {@link RetryPolicy#initialDelay()}: delay before the second attempt, doubled with each further one, such as {@code 100ms}. */
    String retryInitialDelay() default "";

    /** {@link RetryPolicy#maxDelay()}: maximum delay, such as {@code 30s}. */
    String retryMaxDelay() default "";

    /** {@link RetryPolicy#retryable()}: only these exceptions are retried; default: all. */
    Class<? extends Throwable>[] retryable() default {};

    /** {@link RetryPolicy#fatal()}: these exceptions are never retried. */
    Class<? extends Throwable>[] fatal() default {};

    /** {@link ConsumerSpec#handlerTimeout()}, such as {@code 5m}. */
    String handlerTimeout() default "";

    /**
     * Whether the failure policy applies to an event without a stored type ({@link EventTypes#TYPE_HEADER}); {@code
     * false} by default: it is read as the type that the method takes.
     */
    String requireTypeHeader() default "";

    /** Whether it starts with the application, {@code true} by default; otherwise {@link EventSqlListenerRegistry} starts it. */
    String autoStartup() default "";
}
