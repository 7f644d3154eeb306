/**
 * EventSQL: streams of events in plain PostgreSQL tables.
 *
 * <p>Only this package is the library's API and follows semantic versioning. Everything below {@code
 * io.eventsql.internal} may change in any release.
 *
 * <p>The entry point is {@link io.eventsql.EventSql}: it creates streams, provides the {@link io.eventsql.EventPublisher}
 * and the {@link io.eventsql.Outbox}, and starts consumers. Parameters and return values are never {@code null} unless
 * annotated {@code @Nullable}; invalid input, {@code null} included, is rejected with {@link
 * io.eventsql.InvalidInputException}.
 */
@NullMarked
package io.eventsql;

import org.jspecify.annotations.NullMarked;
