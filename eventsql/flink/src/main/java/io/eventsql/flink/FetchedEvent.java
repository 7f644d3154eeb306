package io.eventsql.flink;

import io.eventsql.reader.LogEvent;
import org.jspecify.annotations.Nullable;

/**
 * An event between the thread that fetches and the one that emits.
 *
 * @param incarnation that of its database when it was read
 */
record FetchedEvent(LogEvent event, @Nullable String incarnation) {}
