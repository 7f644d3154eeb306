package io.eventsql.reader;

import java.io.Serializable;
import java.time.Duration;
import java.util.Objects;

/**
 * The settings of an {@link EventReader}. Immutable.
 *
 * @param schema the database schema with the library's tables: lower-case letters, digits and underscores
 * @param networkTimeout the time after which a read fails if the database does not respond, 100 ms to 1 h; the database
 *     itself ends a statement after three quarters of it. In whole seconds, 1 or more, while {@link EventReader#connect}'s
 *     connections are opened
 * @param pageEventsMax the most events of a page, 1 to 100,000
 * @param pageBytesMax a page ends with the event that brings its values, keys and headers to this number of bytes, 1 or more
 * @param pollInterval how long a {@link StreamCursor} waits before it asks for new events again, 1 ms to 1 h
 */
public record ReaderSettings(
        String schema, Duration networkTimeout, int pageEventsMax, long pageBytesMax, Duration pollInterval)
        implements Serializable {
    private static final Duration TIME_MAX = Duration.ofHours(1);
    private static final Duration NETWORK_TIMEOUT_MIN = Duration.ofMillis(100);
    private static final int PAGE_EVENTS_LIMIT = 100_000;

    private static final ReaderSettings DEFAULTS =
            new ReaderSettings("eventsql", Duration.ofSeconds(10), 2_000, 16L << 20, Duration.ofMillis(100));

    /** @throws IllegalArgumentException if a value is out of its range */
    public ReaderSettings {
        if (!schema.matches("[a-z_][a-z0-9_]{0,62}")) {
            throw new IllegalArgumentException(
                    "schema must have 1 to 63 lower-case letters, digits and underscores, but is " + schema);
        }
        requireTime("networkTimeout", networkTimeout, NETWORK_TIMEOUT_MIN);
        requireTime("pollInterval", pollInterval, Duration.ofMillis(1));
        if (pageEventsMax < 1 || pageEventsMax > PAGE_EVENTS_LIMIT) {
            throw new IllegalArgumentException(
                    "pageEventsMax must be between 1 and " + PAGE_EVENTS_LIMIT + ", but is " + pageEventsMax);
        }
        if (pageBytesMax < 1) {
            throw new IllegalArgumentException("pageBytesMax must be at least 1, but is " + pageBytesMax);
        }
    }

    private static void requireTime(String name, Duration time, Duration min) {
        Objects.requireNonNull(time, name);
        if (time.compareTo(min) < 0 || time.compareTo(TIME_MAX) > 0) {
            throw new IllegalArgumentException(
                    name + " must be between " + min + " and " + TIME_MAX + ", but is " + time);
        }
    }

    /** Returns the schema {@code eventsql}, 10 s, pages of 2,000 events or 16 MiB, and a poll every 100 ms. */
    public static ReaderSettings defaults() {
        return DEFAULTS;
    }

    /** Returns these settings with another schema. */
    public ReaderSettings withSchema(String newSchema) {
        return new ReaderSettings(newSchema, networkTimeout, pageEventsMax, pageBytesMax, pollInterval);
    }

    /** Returns these settings with another network timeout. */
    public ReaderSettings withNetworkTimeout(Duration newTimeout) {
        return new ReaderSettings(schema, newTimeout, pageEventsMax, pageBytesMax, pollInterval);
    }

    /** Returns these settings with another size of pages. */
    public ReaderSettings withPage(int newEventsMax, long newBytesMax) {
        return new ReaderSettings(schema, networkTimeout, newEventsMax, newBytesMax, pollInterval);
    }

    /** Returns these settings with another poll interval. */
    public ReaderSettings withPollInterval(Duration newInterval) {
        return new ReaderSettings(schema, networkTimeout, pageEventsMax, pageBytesMax, newInterval);
    }
}
