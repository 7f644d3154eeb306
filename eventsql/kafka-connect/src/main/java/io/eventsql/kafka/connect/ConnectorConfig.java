package io.eventsql.kafka.connect;

import io.eventsql.reader.EventReader;
import io.eventsql.reader.ReaderSettings;
import io.eventsql.reader.StreamPartition;
import io.eventsql.reader.StreamPosition;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;
import org.jspecify.annotations.Nullable;

/** The configuration of a connector and of its tasks. Immutable. */
final class ConnectorConfig extends AbstractConfig {
    static final String URL = "connection.url";
    static final String USER = "connection.user";
    static final String PASSWORD = "connection.password";
    static final String SCHEMA = "connection.schema";
    static final String NETWORK_TIMEOUT = "connection.timeout.ms";
    static final String STREAMS = "streams";
    static final String TOPIC_FORMAT = "topic.format";
    static final String TOPIC_PARTITION = "topic.partition";
    static final String VALUE_TYPE = "value.type";
    static final String POSITION_HEADERS = "position.headers";
    static final String START_FROM = "start.from";
    static final String OUT_OF_RANGE = "out.of.range.policy";
    static final String UNREADABLE_EVENTS = "unreadable.events.policy";
    static final String ERASED_EVENTS = "erased.events.policy";
    static final String BATCH_EVENTS = "batch.events.max";
    static final String BATCH_BYTES = "batch.bytes.max";
    static final String POLL_INTERVAL = "poll.interval.ms";
    static final String DISCOVERY_INTERVAL = "discovery.interval.ms";
    /** Set by the connector for each task: the names of its partitions. */
    static final String TASK_PARTITIONS = "task.partitions";

    private static final String URL_PREFIX = "jdbc:postgresql:";
    private static final String EARLIEST = "earliest";
    private static final int HOUR_MS = 3_600_000;
    private static final int BATCH_EVENTS_LIMIT = 100_000;
    private static final int BATCH_BYTES_LIMIT = 1 << 30;

    /** What happens to an erased event. */
    enum ErasedEvents {
        SKIP,
        TOMBSTONE,
        FAIL
    }

    static final ConfigDef DEFINITION = new ConfigDef()
            .define(
                    URL,
                    ConfigDef.Type.STRING,
                    ConfigDef.NO_DEFAULT_VALUE,
                    ConfigDef.LambdaValidator.with(ConnectorConfig::checkUrls, () -> "URLs separated by semicolons"),
                    Importance.HIGH,
                    "JDBC URLs of the databases of all shards, in any order, separated by semicolons")
            .define(
                    USER,
                    ConfigDef.Type.STRING,
                    Importance.HIGH,
                    "role of the databases; it needs the rights of eventsql_reader")
            .define(PASSWORD, ConfigDef.Type.PASSWORD, "", Importance.HIGH, "password of the role")
            .define(
                    SCHEMA,
                    ConfigDef.Type.STRING,
                    "eventsql",
                    ConfigDef.LambdaValidator.with(ConnectorConfig::checkSchema, () -> "a name in lower case"),
                    Importance.LOW,
                    "database schema with the library's tables")
            .define(
                    NETWORK_TIMEOUT,
                    ConfigDef.Type.INT,
                    10_000,
                    Range.between(100, HOUR_MS),
                    Importance.LOW,
                    "time after which a read fails, and is repeated, if the database does not respond")
            .define(
                    STREAMS,
                    ConfigDef.Type.LIST,
                    ConfigDef.NO_DEFAULT_VALUE,
                    ConfigDef.LambdaValidator.with(ConnectorConfig::checkStreams, () -> "one or more streams"),
                    Importance.HIGH,
                    "streams to read, separated by commas")
            .define(
                    TOPIC_FORMAT,
                    ConfigDef.Type.STRING,
                    "${stream}",
                    ConfigDef.LambdaValidator.with(
                            (name, value) -> new TopicFormat(name, String.valueOf(value)),
                            () -> "may contain ${stream}, ${shard} and ${partition}"),
                    Importance.HIGH,
                    "name of the topic of an event; may contain ${stream}, ${shard} and ${partition}")
            .define(
                    TOPIC_PARTITION,
                    ConfigDef.Type.STRING,
                    "key",
                    ValidString.in("key", "same"),
                    Importance.MEDIUM,
                    "key: Kafka's partitioner chooses, which keeps the order of each key; same: the partition of the"
                            + " topic with the number of the stream's partition, which keeps the order of partitions")
            .define(
                    VALUE_TYPE,
                    ConfigDef.Type.STRING,
                    "bytes",
                    ValidString.in("bytes", "string"),
                    Importance.MEDIUM,
                    "type of values for the value converter: bytes as stored, or string, decoded as UTF-8")
            .define(
                    POSITION_HEADERS,
                    ConfigDef.Type.BOOLEAN,
                    false,
                    Importance.LOW,
                    "whether records have the headers eventsql.stream, eventsql.shard, eventsql.partition and"
                            + " eventsql.offset")
            .define(
                    START_FROM,
                    ConfigDef.Type.STRING,
                    EARLIEST,
                    ConfigDef.LambdaValidator.with(
                            (name, value) -> start(name, String.valueOf(value)),
                            () -> "earliest, or a time in ISO 8601"),
                    Importance.MEDIUM,
                    "where a partition begins of which no event was written yet: earliest, or the first event published"
                            + " at a time such as 2026-11-24T09:30:00Z or later")
            .define(
                    OUT_OF_RANGE,
                    ConfigDef.Type.STRING,
                    "fail",
                    ValidString.in("fail", "earliest"),
                    Importance.MEDIUM,
                    "if retention has removed events before they were read: fail the task, or log an error with the"
                            + " lost range and continue at the earliest event")
            .define(
                    UNREADABLE_EVENTS,
                    ConfigDef.Type.STRING,
                    "fail",
                    ValidString.in("fail", "skip"),
                    Importance.MEDIUM,
                    "if rows are missing from the log, or events cannot be decoded: fail the task, or log an"
                            + " error with the offsets and skip them")
            .define(
                    ERASED_EVENTS,
                    ConfigDef.Type.STRING,
                    "skip",
                    ValidString.in("skip", "tombstone", "fail"),
                    Importance.MEDIUM,
                    "for an event whose value was erased before it was read: no record, a record with the key and"
                            + " without a value, or fail the task")
            .define(
                    BATCH_EVENTS,
                    ConfigDef.Type.INT,
                    2_000,
                    Range.between(1, BATCH_EVENTS_LIMIT),
                    Importance.LOW,
                    "most events read from a partition at once")
            .define(
                    BATCH_BYTES,
                    ConfigDef.Type.INT,
                    1 << 20,
                    Range.between(1, BATCH_BYTES_LIMIT),
                    Importance.LOW,
                    "bytes of keys, values and headers after which a batch of a partition ends; a task holds as much for"
                            + " each of its partitions")
            .define(
                    POLL_INTERVAL,
                    ConfigDef.Type.INT,
                    100,
                    Range.between(1, HOUR_MS),
                    Importance.LOW,
                    "time to wait at the heads of all partitions")
            .define(
                    DISCOVERY_INTERVAL,
                    ConfigDef.Type.INT,
                    60_000,
                    Range.between(1, HOUR_MS),
                    Importance.LOW,
                    "interval at which the connector looks for new partitions, which are read from their first event");

    private static final ConfigDef TASK_DEFINITION = new ConfigDef(DEFINITION)
            .define(TASK_PARTITIONS, ConfigDef.Type.LIST, Importance.HIGH, "names of the partitions of the task");

    private ConnectorConfig(ConfigDef definition, Map<String, String> properties) {
        super(definition, properties);
    }

    /** @throws ConfigException if a property is missing or invalid; the message names it */
    static ConnectorConfig ofConnector(Map<String, String> properties) {
        return new ConnectorConfig(DEFINITION, properties);
    }

    /** @throws ConfigException if a property is missing or invalid; the message names it */
    static ConnectorConfig ofTask(Map<String, String> properties) {
        return new ConnectorConfig(TASK_DEFINITION, properties);
    }

    private static List<String> urls(@Nullable Object value) {
        return Stream.of(String.valueOf(value).split(";"))
                .map(String::strip)
                .filter(url -> !url.isEmpty())
                .toList();
    }

    private static void checkUrls(String name, @Nullable Object value) {
        List<String> urls = urls(value);
        if (urls.isEmpty() || !urls.stream().allMatch(url -> url.startsWith(URL_PREFIX))) {
            throw new ConfigException(name, value, "Each URL starts with " + URL_PREFIX);
        }
    }

    private static void checkSchema(String name, @Nullable Object value) {
        try {
            ReaderSettings.defaults().withSchema(String.valueOf(value));
        } catch (IllegalArgumentException e) {
            throw new ConfigException(name, value, e.getMessage());
        }
    }

    private static void checkStreams(String name, @Nullable Object value) {
        if (!(value instanceof List<?> streams) || streams.isEmpty() || streams.contains("")) {
            throw new ConfigException(name, value, "At least one stream is required, and none may be empty");
        }
        if (streams.stream().distinct().count() < streams.size()) {
            throw new ConfigException(name, value, "Each stream may occur once");
        }
    }

    private static StreamPosition start(String name, String value) {
        if (value.equals(EARLIEST)) {
            return StreamPosition.EARLIEST;
        }
        try {
            return StreamPosition.at(Instant.parse(value));
        } catch (DateTimeException e) {
            throw new ConfigException(name, value, "Must be earliest, or a time such as 2026-11-24T09:30:00Z");
        }
    }

    /** Opens a reader of all shards. Its exceptions are those of {@link EventReader#open}. */
    EventReader openReader() {
        return EventReader.connect(
                urls(getString(URL)), getString(USER), getPassword(PASSWORD).value(), readerSettings());
    }

    private ReaderSettings readerSettings() {
        return ReaderSettings.defaults()
                .withSchema(getString(SCHEMA))
                .withNetworkTimeout(Duration.ofMillis(getInt(NETWORK_TIMEOUT)))
                .withPage(getInt(BATCH_EVENTS), getInt(BATCH_BYTES));
    }

    List<String> streams() {
        return getList(STREAMS);
    }

    TopicFormat topics() {
        return new TopicFormat(TOPIC_FORMAT, getString(TOPIC_FORMAT));
    }

    boolean keepsPartitions() {
        return getString(TOPIC_PARTITION).equals("same");
    }

    boolean isText() {
        return getString(VALUE_TYPE).equals("string");
    }

    boolean addsPositionHeaders() {
        return getBoolean(POSITION_HEADERS);
    }

    StreamPosition start() {
        return start(START_FROM, getString(START_FROM));
    }

    boolean continuesOutOfRange() {
        return getString(OUT_OF_RANGE).equals(EARLIEST);
    }

    boolean skipsUnreadable() {
        return getString(UNREADABLE_EVENTS).equals("skip");
    }

    ErasedEvents erasedEvents() {
        return ErasedEvents.valueOf(getString(ERASED_EVENTS).toUpperCase(Locale.ROOT));
    }

    Duration pollInterval() {
        return Duration.ofMillis(getInt(POLL_INTERVAL));
    }

    Duration discoveryInterval() {
        return Duration.ofMillis(getInt(DISCOVERY_INTERVAL));
    }

    /** Returns the partitions of a task. */
    List<StreamPartition> taskPartitions() {
        return getList(TASK_PARTITIONS).stream()
                .map(SourcePartitions::partition)
                .toList();
    }

    /** Returns the streams and databases, without passwords. */
    String source() {
        return streams() + " in "
                + urls(getString(URL)).stream()
                        .map(url -> url.replaceFirst("\\?.*", ""))
                        .toList();
    }
}
