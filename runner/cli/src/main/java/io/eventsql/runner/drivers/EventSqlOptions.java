package io.eventsql.runner.drivers;

import io.eventsql.Compaction;
import io.eventsql.ConsumerSpec;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.StartPosition;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;

/** The options of the EventSQL drivers, with the names and limits of the library's settings. */
final class EventSqlOptions {
    private static final Map<String, BiConsumer<Settings.Builder, Long>> SETTINGS = Map.of(
            "buffer_bytes", Settings.Builder::bufferBytes,
            "max_batch_events", (builder, number) -> builder.maxBatchEvents(Math.toIntExact(number)),
            "max_batch_bytes", Settings.Builder::maxBatchBytes,
            "append_connections", (builder, number) -> builder.appendConnections(Math.toIntExact(number)),
            "max_commit_delay_ms", (builder, number) -> builder.maxCommitDelay(Duration.ofMillis(number)),
            "notify_interval_ms", (builder, number) -> builder.notifyInterval(Duration.ofMillis(number)),
            "publish_timeout_ms", (builder, number) -> builder.publishTimeout(Duration.ofMillis(number)));

    private static final String STORAGE = "storage";
    private static final String SEGMENT_EVENTS = "segment_events";
    private static final String RETAINED_EVENTS = "retained_events";
    private static final String COMPACTED = "compacted";
    private static final String PAGE_EVENTS = "page_events";
    private static final String START = "start";
    private static final String KEY_CONCURRENCY = "key_concurrency";
    private static final String HANDLER = "handler";
    private static final String HANDLER_MS = "handler_ms";
    private static final String MEMBERS = "members";
    private static final Set<String> OF_STREAMS_AND_CONSUMERS = Set.of(
            STORAGE,
            SEGMENT_EVENTS,
            RETAINED_EVENTS,
            COMPACTED,
            PAGE_EVENTS,
            START,
            KEY_CONCURRENCY,
            HANDLER,
            HANDLER_MS,
            MEMBERS);
    private static final int MEMBERS_MAX = 100;
    private static final int HANDLER_MS_MAX = 60_000;

    private final Map<String, String> options;

    EventSqlOptions(Map<String, String> options) {
        this.options = Map.copyOf(options);
    }

    /**
     * Returns the library's settings, after a check of all options.
     *
     * @throws IllegalArgumentException if an option is unknown or out of range; the message names it
     */
    Settings settings() {
        stream("stream", 1);
        consumer("stream", "consumer");
        members();
        handlerTime();
        handlesSingly();
        Settings.Builder builder = Settings.builder();
        for (String name : options.keySet()) {
            BiConsumer<Settings.Builder, Long> setting = SETTINGS.get(name);
            if (setting != null) {
                setting.accept(builder, number(name, 0));
            } else if (!OF_STREAMS_AND_CONSUMERS.contains(name)) {
                Set<String> known = new TreeSet<>(SETTINGS.keySet());
                known.addAll(OF_STREAMS_AND_CONSUMERS);
                throw new IllegalArgumentException(
                        "driver_options." + name + " is unknown; known options: " + String.join(", ", known));
            }
        }
        return builder.build();
    }

    /** Returns a new stream: how it stores and keeps its events, see {@link #settings()}. */
    StreamSpec stream(String name, int partitions) {
        StreamSpec spec = StreamSpec.of(name)
                .withPartitions(partitions)
                .withStorage(isFirst(STORAGE, "rows", "blocks") ? Storage.ROWS : Storage.BLOCKS);
        if (options.containsKey(SEGMENT_EVENTS)) {
            spec = spec.withSegmentSize(number(SEGMENT_EVENTS, 0));
        }
        if (options.containsKey(RETAINED_EVENTS)) {
            spec = spec.withRetention(Retention.FOREVER.withMaxEvents(number(RETAINED_EVENTS, 0)));
        }
        return isFirst(COMPACTED, "false", "true") ? spec : spec.withCompaction(Compaction.DEFAULT);
    }

    /** Returns a consumer's settings, see {@link #settings()}. */
    ConsumerSpec consumer(String stream, String name) {
        ConsumerSpec spec = ConsumerSpec.of(stream, name);
        if (options.containsKey(PAGE_EVENTS)) {
            spec = spec.withPageEvents(Math.toIntExact(number(PAGE_EVENTS, 0)));
        }
        if (options.containsKey(KEY_CONCURRENCY)) {
            spec = spec.withKeyConcurrency(Math.toIntExact(number(KEY_CONCURRENCY, 0)));
        }
        boolean earliest = isFirst(START, "earliest", "latest");
        return spec.withStartPosition(earliest ? StartPosition.EARLIEST : StartPosition.LATEST);
    }

    /** Returns how many members each consumer has, with a library of their own; 0 if it is the publisher's. */
    int members() {
        return Math.toIntExact(inRange(MEMBERS, 0, 0, MEMBERS_MAX));
    }

    /** Returns whether a consumer handles one event at a time instead of a page. */
    boolean handlesSingly() {
        return !isFirst(HANDLER, "page", "event")
                || options.containsKey(KEY_CONCURRENCY)
                || options.containsKey(HANDLER_MS);
    }

    /** Returns how long a consumer sleeps with each event, as if it called another service. */
    Duration handlerTime() {
        return Duration.ofMillis(inRange(HANDLER_MS, 0, 0, HANDLER_MS_MAX));
    }

    private long number(String name, long otherwise) {
        return inRange(name, otherwise, Integer.MIN_VALUE, Integer.MAX_VALUE);
    }

    private long inRange(String name, long otherwise, long min, long max) {
        String value = options.get(name);
        if (value == null) {
            return otherwise;
        }
        long number;
        try {
            number = Integer.parseInt(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    "driver_options." + name + " must be an integer, but is '" + value + "'", e);
        }
        if (number < min || number > max) {
            throw new IllegalArgumentException(
                    "driver_options." + name + " must be between " + min + " and " + max + ", but is " + number);
        }
        return number;
    }

    /** Returns whether an option has the first of two values, which is the default. */
    private boolean isFirst(String name, String first, String second) {
        String value = options.getOrDefault(name, first);
        if (!value.equals(first) && !value.equals(second)) {
            throw new IllegalArgumentException(
                    "driver_options." + name + " must be " + first + " or " + second + ", but is '" + value + "'");
        }
        return value.equals(first);
    }
}
