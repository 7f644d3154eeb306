package io.eventsql.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.flink.sink.EventSerializer;
import io.eventsql.flink.sink.EventSqlSink;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.junit.jupiter.api.Test;

/** What log lines and the messages of exceptions show of sources and sinks. */
class ShownSettingsTest {
    private static final String PASSWORD = "s3cret";
    private static final String ADDRESS = "jdbc:postgresql://db0,db1/app";
    private static final String URL = ADDRESS + "?ssl=true&sslpassword=" + PASSWORD;

    @Test
    void source_showsNoPassword() {
        EventSqlSource<String> source = EventSqlSource.builder(
                        "orders", EventDeserializer.ofValue(new SimpleStringSchema()))
                .urls(URL)
                .credentials("analyst", PASSWORD)
                .build();

        assertThat(source.toString()).contains("[" + ADDRESS + "]").doesNotContain(PASSWORD);
    }

    @Test
    void sink_showsNoPassword() {
        EventSqlSink<String> sink = EventSqlSink.builder("orders", EventSerializer.ofValue(new SimpleStringSchema()))
                .urls(URL)
                .credentials("writer", PASSWORD)
                .build();

        assertThat(sink.toString()).contains("[" + ADDRESS + "]").doesNotContain(PASSWORD);
    }
}
