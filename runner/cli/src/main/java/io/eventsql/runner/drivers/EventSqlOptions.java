package io.eventsql.runner.drivers;

import io.eventsql.ConsumerSpec;
import io.eventsql.Settings;
import io.eventsql.Storage;
import java.time.Duration;
import java.util.Map;
import java.util.function.LongConsumer;

/** The options of the EventSQL drivers, with the names and limits of the library's settings. */
final class EventSqlOptions {
    private static final String PAGE_EVENTS = "page_events";
    private static final String STORAGE = "storage";

    private final Map<String, String> options;

    EventSqlOptions(Map<String, String> options) {
        this.options = Map.copyOf(options);
    }

    /**
     * Returns the library's settings.
     *
     * @throws IllegalArgumentException if an option is unknown or out of range; the message names it
     */
    Settings settings() {
        Settings.Builder builder = Settings.builder();
        storage();
        options.forEach((name, value) -> set(builder, name, value));
        return builder.build();
    }

    /** Returns a consumer's settings, see {@link #settings()}. */
    ConsumerSpec consumer(String stream, String name) {
        ConsumerSpec spec = ConsumerSpec.of(stream, name);
        String pageEvents = options.get(PAGE_EVENTS);
        return pageEvents == null ? spec : spec.withPageEvents(Math.toIntExact(number(PAGE_EVENTS, pageEvents)));
    }

    /** Returns how a new stream stores its events, see {@link #settings()}. */
    Storage storage() {
        String storage = options.getOrDefault(STORAGE, "rows");
        return switch (storage) {
            case "rows" -> Storage.ROWS;
            case "blocks" -> Storage.BLOCKS;
            default ->
                throw new IllegalArgumentException(
                        "driver_options." + STORAGE + " must be rows or blocks, but is '" + storage + "'");
        };
    }

    private static void set(Settings.Builder builder, String name, String value) {
        if (name.equals(STORAGE)) {
            return;
        }
        LongConsumer setting = switch (name) {
            case "buffer_bytes" -> builder::bufferBytes;
            case "max_batch_events" -> number -> builder.maxBatchEvents(Math.toIntExact(number));
            case "max_batch_bytes" -> builder::maxBatchBytes;
            case "append_connections" -> number -> builder.appendConnections(Math.toIntExact(number));
            case "max_commit_delay_ms" -> number -> builder.maxCommitDelay(Duration.ofMillis(number));
            case "notify_interval_ms" -> number -> builder.notifyInterval(Duration.ofMillis(number));
            case "publish_timeout_ms" -> number -> builder.publishTimeout(Duration.ofMillis(number));
            case PAGE_EVENTS -> number -> {};
            default ->
                throw new IllegalArgumentException("driver_options." + name
                        + " is unknown; known options: append_connections, buffer_bytes, max_batch_bytes,"
                        + " max_batch_events, max_commit_delay_ms, notify_interval_ms, page_events, publish_timeout_ms,"
                        + " storage");
        };
        setting.accept(number(name, value));
    }

    private static long number(String name, String value) {
        try {
            return Integer.parseInt(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(
                    "driver_options." + name + " must be an integer, but is '" + value + "'", e);
        }
    }
}
