/**
 * EventSQL: streams of events in plain PostgreSQL tables.
 *
 * <p>This package alone is the library's API and follows semantic versioning. Everything below {@code
 * io.eventsql.internal} may change in any release.
 *
 * <p>Start at {@link io.eventsql.EventSql}: it creates streams, gives the {@link io.eventsql.EventPublisher} and starts
 * consumers. Nothing here accepts or returns {@code null} unless it says {@code @Nullable}.
 */
@NullMarked
package io.eventsql;

import org.jspecify.annotations.NullMarked;
