package io.eventsql.kafka.connect;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.reader.StreamPartition;
import io.eventsql.reader.StreamPosition;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConnectorConfigTest {
    private static final Map<String, String> MINIMAL = Map.of(
            "connection.url", "jdbc:postgresql://db0,db1/app; jdbc:postgresql://db2/app?ssl=true",
            "connection.user", "connector",
            "connection.password", "s3cret",
            "streams", "orders, payments");

    private static Map<String, String> with(String name, String value) {
        Map<String, String> properties = new HashMap<>(MINIMAL);
        properties.put(name, value);
        return properties;
    }

    @Test
    void minimal_hasDefaults() {
        ConnectorConfig config = ConnectorConfig.ofConnector(MINIMAL);
        StreamPartition partition = new StreamPartition("orders", 1, 3);

        assertThat(config.streams()).containsExactly("orders", "payments");
        assertThat(config.topics().topic(partition)).isEqualTo("orders");
        assertThat(config.start()).isEqualTo(StreamPosition.EARLIEST);
        assertThat(config.keepsPartitions()).isFalse();
        assertThat(config.isText()).isFalse();
        assertThat(config.continuesOutOfRange()).isFalse();
        assertThat(config.skipsUnreadable()).isFalse();
        assertThat(config.erasedEvents()).isEqualTo(ConnectorConfig.ErasedEvents.SKIP);
    }

    @Test
    void source_showsNoSecrets() {
        ConnectorConfig config = ConnectorConfig.ofConnector(MINIMAL);

        assertThat(config.source())
                .isEqualTo("[orders, payments] in [jdbc:postgresql://db0,db1/app, jdbc:postgresql://db2/app]");
        assertThat(config.values().toString()).doesNotContain("s3cret");
    }

    @ParameterizedTest
    @CsvSource({
        "connection.url, '', starts with jdbc:postgresql:",
        "connection.url, jdbc:postgresql://a/b;jdbc:mysql://c/d, starts with jdbc:postgresql:",
        "connection.schema, No Schema, lower-case letters",
        "connection.timeout.ms, 99, at least 100",
        "streams, '', At least one stream",
        "streams, 'orders,orders', Each stream may occur once",
        "topic.format, events-${topic}, '${topic} must be ${stream}, ${shard} or ${partition}'",
        "topic.format, a/${stream}, 'letters, digits, dots, underscores and hyphens'",
        "topic.partition, random, 'must be one of: key, same'",
        "value.type, json, 'must be one of: bytes, string'",
        "position.headers, 7, either true or false",
        "start.from, latest, 'earliest, or a time such as 2026'",
        "out.of.range.policy, latest, 'must be one of: fail, earliest'",
        "unreadable.events.policy, ignore, 'must be one of: fail, skip'",
        "erased.events.policy, keep, 'must be one of: skip, tombstone, fail'",
        "batch.events.max, 0, at least 1",
        "batch.bytes.max, 0, at least 1",
        "poll.interval.ms, 0, at least 1",
        "discovery.interval.ms, 0, at least 1",
    })
    void invalid_isRefusedWithNameAndRemedy(String name, String value, String remedy) {
        Map<String, String> properties = with(name, value);

        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(() -> ConnectorConfig.ofConnector(properties))
                .withMessageContaining(name)
                .withMessageContaining(remedy);
        assertThat(new EventSqlSourceConnector().validate(properties).configValues())
                .filteredOn(found -> !found.errorMessages().isEmpty())
                .extracting(ConfigValue::name)
                .containsExactly(name);
    }

    @Test
    void required_missing_isRefused() {
        assertThat(new EventSqlSourceConnector().validate(Map.of()).configValues())
                .filteredOn(found -> !found.errorMessages().isEmpty())
                .extracting(ConfigValue::name)
                .containsExactlyInAnyOrder("connection.url", "connection.user", "streams");
    }

    @Test
    void startFrom_time_isAPosition() {
        assertThat(ConnectorConfig.ofConnector(with("start.from", "2026-11-24T09:30:00Z"))
                        .start())
                .isEqualTo(StreamPosition.at(Instant.parse("2026-11-24T09:30:00Z")));
    }

    @Test
    void topicFormat_placeholders_areReplaced() {
        TopicFormat format = ConnectorConfig.ofConnector(with("topic.format", "events.${stream}-${shard}.${partition}"))
                .topics();

        assertThat(format.topic(new StreamPartition("a.b", 1, 3))).isEqualTo("events.a.b-1.3");
    }

    /** Of the shards, the one with the most partitions decides. */
    @Test
    void topicFormat_partitionsAreKept_topicsNeedAsMany() {
        List<StreamPartition> partitions = List.of(
                new StreamPartition("orders", 0, 0),
                new StreamPartition("orders", 1, 0),
                new StreamPartition("orders", 1, 3),
                new StreamPartition("payments", 0, 1));

        ConnectorConfig each = ConnectorConfig.ofConnector(MINIMAL);
        ConnectorConfig joined = ConnectorConfig.ofConnector(with("topic.format", "all"));

        assertThat(each.topics().partitionsNeeded(partitions)).isEqualTo(Map.of("orders", 4, "payments", 2));
        assertThat(joined.topics().partitionsNeeded(partitions)).isEqualTo(Map.of("all", 4));
    }

    @Test
    void task_hasItsPartitions() {
        assertThat(ConnectorConfig.ofTask(with("task.partitions", "orders/0/3,payments/1/0"))
                        .taskPartitions())
                .isEqualTo(List.of(new StreamPartition("orders", 0, 3), new StreamPartition("payments", 1, 0)));
    }

    @Test
    void support_isExactlyOnceByPolls() {
        EventSqlSourceConnector connector = new EventSqlSourceConnector();

        assertThat(connector.exactlyOnceSupport(MINIMAL)).isEqualTo(ExactlyOnceSupport.SUPPORTED);
        assertThat(connector.canDefineTransactionBoundaries(MINIMAL))
                .isEqualTo(ConnectorTransactionBoundaries.UNSUPPORTED);
    }

    /** The page's table has each option with its default. */
    @Test
    void options_areDocumented() throws IOException {
        String page = Files.readString(repository().resolve("docs/kafka-connect.md"));

        ConnectorConfig.DEFINITION.configKeys().forEach((name, key) -> {
            Object value = key.defaultValue;
            String shown = !key.hasDefault() ? "required" : value instanceof Boolean ? value.toString() : text(value);
            assertThat(page).contains("| `" + name + "` | " + shown + " |");
        });
    }

    private static String text(Object value) {
        String text = value instanceof org.apache.kafka.common.config.types.Password ? "" : Objects.toString(value);
        return text.isEmpty() ? "none" : "`" + text + "`";
    }

    private static Path repository() {
        return Stream.iterate(Path.of("").toAbsolutePath(), Objects::nonNull, Path::getParent)
                .filter(folder -> Files.exists(folder.resolve("docs/glossary.md")))
                .findFirst()
                .orElseThrow();
    }
}
