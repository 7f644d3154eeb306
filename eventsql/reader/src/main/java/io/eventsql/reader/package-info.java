/**
 * Reads streams of EventSQL without being a consumer: nothing is written, locked or remembered in the database, so a read
 * replica will do. For connectors, exports and tools; applications that handle events use the consumers of the core library.
 *
 * <p>The entry point is {@link io.eventsql.reader.EventReader}. A {@link io.eventsql.reader.StreamCursor} reads the events
 * of all partitions; {@link io.eventsql.reader.EventReader#read} reads pages of chosen partitions, for callers that keep
 * positions themselves. What an exception of this package says is final unless it is a {@link
 * io.eventsql.reader.DatabaseUnavailableException}. Parameters and return values are never {@code null} unless annotated
 * {@code @Nullable}.
 */
@NullMarked
package io.eventsql.reader;

import org.jspecify.annotations.NullMarked;
