package io.eventsql.flink.table;

import io.eventsql.flink.EventSqlSourceBuilder;
import io.eventsql.reader.ReaderSettings;
import io.eventsql.reader.StreamPosition;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.jspecify.annotations.Nullable;

/** The options of the connector {@code eventsql}. */
final class EventSqlOptions {
    static final ConfigOption<List<String>> URL = ConfigOptions.key("url")
            .stringType()
            .asList()
            .noDefaultValue()
            .withDescription(
                    "The JDBC URLs of all shards, or of replicas of them, in any order, separated by semicolons.");
    static final ConfigOption<String> USERNAME =
            ConfigOptions.key("username").stringType().noDefaultValue().withDescription("The database role.");
    static final ConfigOption<String> PASSWORD =
            ConfigOptions.key("password").stringType().noDefaultValue().withDescription("Its password.");
    static final ConfigOption<String> STREAM =
            ConfigOptions.key("stream").stringType().noDefaultValue().withDescription("The stream's name.");
    static final ConfigOption<String> SCHEMA = ConfigOptions.key("schema")
            .stringType()
            .defaultValue(ReaderSettings.defaults().schema())
            .withDescription("The database schema with the library's tables.");
    static final ConfigOption<Mode> STARTUP_MODE = ConfigOptions.key("scan.startup.mode")
            .enumType(Mode.class)
            .defaultValue(Mode.EARLIEST)
            .withDescription("Where a new query starts.");
    static final ConfigOption<Long> STARTUP_TIMESTAMP = ConfigOptions.key("scan.startup.timestamp-millis")
            .longType()
            .noDefaultValue()
            .withDescription("With the mode 'timestamp': milliseconds since 1970.");
    static final ConfigOption<Long> STARTUP_OFFSET = ConfigOptions.key("scan.startup.offset")
            .longType()
            .noDefaultValue()
            .withDescription("With the mode 'offset': the offset in each partition.");
    static final ConfigOption<Mode> BOUNDED_MODE = ConfigOptions.key("scan.bounded.mode")
            .enumType(Mode.class)
            .noDefaultValue()
            .withDescription("Where the query ends, exclusively; without it, the query follows the stream.");
    static final ConfigOption<Long> BOUNDED_TIMESTAMP = ConfigOptions.key("scan.bounded.timestamp-millis")
            .longType()
            .noDefaultValue()
            .withDescription("With the mode 'timestamp': milliseconds since 1970.");
    static final ConfigOption<Long> BOUNDED_OFFSET = ConfigOptions.key("scan.bounded.offset")
            .longType()
            .noDefaultValue()
            .withDescription("With the mode 'offset': the offset in each partition.");
    static final ConfigOption<Duration> DISCOVERY_INTERVAL = ConfigOptions.key("scan.discovery-interval")
            .durationType()
            .defaultValue(EventSqlSourceBuilder.DEFAULT_DISCOVERY_INTERVAL)
            .withDescription("How often to look for new partitions; zero: never.");
    static final ConfigOption<Duration> POLL_INTERVAL = ConfigOptions.key("scan.poll-interval")
            .durationType()
            .defaultValue(ReaderSettings.defaults().pollInterval())
            .withDescription("How long to wait at the head before asking for new events.");
    static final ConfigOption<Duration> FAILURE_TIMEOUT = ConfigOptions.key("scan.failure-timeout")
            .durationType()
            .defaultValue(EventSqlSourceBuilder.DEFAULT_FAILURE_TIMEOUT)
            .withDescription("For how long a shard may be unavailable before the query fails.");
    static final ConfigOption<Integer> PAGE_EVENTS = ConfigOptions.key("scan.page-events")
            .intType()
            .defaultValue(ReaderSettings.defaults().pageEventsMax())
            .withDescription("The most events that are fetched from a partition at once.");

    private EventSqlOptions() {}

    /** A kind of position. */
    enum Mode {
        EARLIEST,
        LATEST,
        TIMESTAMP,
        OFFSET
    }

    static StreamPosition start(ReadableConfig options) {
        return position(options, options.get(STARTUP_MODE), STARTUP_TIMESTAMP, STARTUP_OFFSET);
    }

    static @Nullable StreamPosition end(ReadableConfig options) {
        Optional<Mode> mode = options.getOptional(BOUNDED_MODE);
        return mode.isEmpty() ? null : position(options, mode.get(), BOUNDED_TIMESTAMP, BOUNDED_OFFSET);
    }

    private static StreamPosition position(
            ReadableConfig options, Mode mode, ConfigOption<Long> timestamp, ConfigOption<Long> offset) {
        return switch (mode) {
            case EARLIEST -> StreamPosition.EARLIEST;
            case LATEST -> StreamPosition.LATEST;
            case TIMESTAMP -> StreamPosition.at(Instant.ofEpochMilli(require(options, timestamp)));
            case OFFSET -> StreamPosition.atOffset(require(options, offset));
        };
    }

    private static long require(ReadableConfig options, ConfigOption<Long> option) {
        return options.getOptional(option)
                .orElseThrow(() -> new ValidationException("The option '" + option.key() + "' is missing"));
    }

    static ReaderSettings reader(ReadableConfig options) {
        return ReaderSettings.defaults()
                .withSchema(options.get(SCHEMA))
                .withPollInterval(options.get(POLL_INTERVAL))
                .withPage(options.get(PAGE_EVENTS), ReaderSettings.defaults().pageBytesMax());
    }
}
