package io.eventsql.flink.table;

import io.eventsql.flink.EventSqlSourceBuilder;
import io.eventsql.flink.sink.EventSqlSinkBuilder;
import io.eventsql.reader.ReaderSettings;
import io.eventsql.reader.StreamPosition;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.connector.base.DeliveryGuarantee;
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

    static final ConfigOption<String> SINK_NAME = ConfigOptions.key("sink.name")
            .stringType()
            .noDefaultValue()
            .withDescription("Under which the databases remember what they have stored; the stream's name by default.");
    static final ConfigOption<DeliveryGuarantee> DELIVERY_GUARANTEE = ConfigOptions.key("sink.delivery-guarantee")
            .enumType(DeliveryGuarantee.class)
            .defaultValue(DeliveryGuarantee.EXACTLY_ONCE)
            .withDescription("'exactly-once': stored when a checkpoint is complete; 'at-least-once': at once.");
    static final ConfigOption<String> KEY_COLUMN = ConfigOptions.key("sink.key-column")
            .stringType()
            .noDefaultValue()
            .withDescription("The column whose value is also the event's key.");
    static final ConfigOption<MemorySize> BUFFER_BYTES = ConfigOptions.key("sink.buffer-bytes")
            .memoryType()
            .defaultValue(new MemorySize(EventSqlSinkBuilder.DEFAULT_BUFFER_BYTES_MAX))
            .withDescription("The most bytes of events that a writer keeps between two checkpoints.");
    static final ConfigOption<Duration> FLUSH_INTERVAL = ConfigOptions.key("sink.flush-interval")
            .durationType()
            .defaultValue(EventSqlSinkBuilder.DEFAULT_FLUSH_INTERVAL)
            .withDescription("With 'at-least-once': how long an event waits at most.");
    static final ConfigOption<Duration> SINK_FAILURE_TIMEOUT = ConfigOptions.key("sink.failure-timeout")
            .durationType()
            .defaultValue(EventSqlSinkBuilder.DEFAULT_FAILURE_TIMEOUT)
            .withDescription("For how long a database may be unavailable before the query fails.");

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
