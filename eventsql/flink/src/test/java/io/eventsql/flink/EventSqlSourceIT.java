package io.eventsql.flink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.reader.LogEvent;
import io.eventsql.reader.StreamPosition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The source in jobs on a mini cluster. */
@Timeout(120)
class EventSqlSourceIT {
    private static FlinkFixture fixture;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    /** An event as text: its position, key and value. */
    private static final class AsText implements EventDeserializer<String> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(LogEvent event, Collector<String> out) {
            out.collect(String.join(
                    "|",
                    "" + event.partition().partition(),
                    "" + event.offset(),
                    event.key(),
                    event.isTombstone() ? "tombstone" : event.text()));
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }

    @Test
    void bounded_severalReaders_readWhatSqlReads() throws Exception {
        fixture.eventSql.createStream(
                StreamSpec.of("bounded").withPartitions(3).withSegmentSize(100).withStorage(Storage.BLOCKS));
        fixture.publish("bounded", 0, 1_000);
        fixture.eventSql.publisher().publish("bounded", Event.tombstone("k0"));
        StreamExecutionEnvironment environment = FlinkFixture.environment(2);
        List<String> read = new ArrayList<>();
        try (CloseableIterator<String> events = environment
                .fromSource(
                        fixture.source("bounded", new AsText())
                                .endAt(StreamPosition.LATEST)
                                .build(),
                        EventSqlSource.watermarks(Duration.ofSeconds(1)),
                        "bounded")
                .executeAndCollect()) {
            events.forEachRemaining(read::add);
        }
        assertThat(read)
                .hasSize(1_001)
                .containsExactlyInAnyOrderElementsOf(fixture.query(
                        "SELECT partition, event_offset, key, coalesce(convert_from(value, 'UTF8'), 'tombstone')"
                                + " FROM eventsql.events_bounded"));
    }

    @Test
    void values_withoutValue_areLeftOut() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("text_only").withPartitions(1));
        fixture.eventSql.publisher().publish("text_only", Event.ofText("k", "v"));
        fixture.eventSql.publisher().publish("text_only", Event.tombstone("k"));
        try (CloseableIterator<String> events = FlinkFixture.environment(1)
                .fromSource(
                        fixture.source("text_only", EventDeserializer.ofValue(new SimpleStringSchema()))
                                .endAt(StreamPosition.LATEST)
                                .build(),
                        WatermarkStrategy.noWatermarks(),
                        "text")
                .executeAndCollect()) {
            assertThat(events).toIterable().containsExactly("v");
        }
    }

    @Test
    void unknownStream_failsTheJob() {
        assertThatExceptionOfType(Exception.class)
                .isThrownBy(() -> FlinkFixture.environment(1)
                        .fromSource(
                                fixture.source("none", new AsText()).build(), WatermarkStrategy.noWatermarks(), "none")
                        .executeAndCollect(1))
                .havingRootCause()
                .withMessageContaining("Stream none does not exist");
    }
}
