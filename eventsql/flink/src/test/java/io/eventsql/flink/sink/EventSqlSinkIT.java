package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.eventsql.StreamSpec;
import io.eventsql.flink.EventDeserializer;
import io.eventsql.flink.FlinkFixture;
import io.eventsql.flink.sink.FailingSink.Step;
import io.eventsql.reader.StreamPosition;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The sink in jobs on a mini cluster. */
@Timeout(120)
class EventSqlSinkIT {
    private static final int EVENTS = 300;

    private static FlinkFixture fixture;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    private static List<String> stored(String stream) {
        return fixture.query("SELECT coalesce(key, '-'), coalesce(convert_from(value, 'UTF8'), 'tombstone'),"
                + " coalesce(headers ->> 'h', '-') FROM eventsql.events_" + stream);
    }

    @Test
    void eachStepOfTheCommitFails_eachEventIsStoredOnce() throws Exception {
        CountingJob job = new CountingJob(fixture, "steps");
        job.publish(0, EVENTS);
        FailingSink.STEPS.addAll(EnumSet.allOf(Step.class));
        StreamExecutionEnvironment environment = FlinkFixture.environment(2);
        job.add(environment, StreamPosition.LATEST, new FailingSink(job.sink().build()));
        environment.execute();
        assertThat(FailingSink.STEPS).isEmpty();
        job.assertEachEventOnce(EVENTS);
    }

    @Test
    void atLeastOnce_storesEventsWithoutCheckpoints() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("at_once").withPartitions(2));
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        environment.getCheckpointConfig().disableCheckpointing();
        environment
                .fromData("a", "b", "tombstone", "skipped")
                .sinkTo(fixture.sink("at_once", EventSqlSinkIT::serialize)
                        .deliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
                        .build());
        environment.execute();
        assertThat(stored("at_once")).containsExactlyInAnyOrder("a|A|1", "b|B|1", "tombstone|tombstone|-");
        assertThat(fixture.query("SELECT count(*) FROM eventsql.sink_producer WHERE sink = 'at_once'"))
                .containsOnly("0");
    }

    private static SinkEvent serialize(String record) {
        return switch (record) {
            case "skipped" -> null;
            case "tombstone" -> new SinkEvent(record, null);
            default ->
                new SinkEvent(
                        record,
                        record.toUpperCase(java.util.Locale.ROOT).getBytes(java.nio.charset.StandardCharsets.UTF_8),
                        Map.of("h", "1"));
        };
    }

    @Test
    void boundedWithoutCheckpoints_isStoredAtItsEnd() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("bounded_values").withPartitions(2));
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        environment.getCheckpointConfig().disableCheckpointing();
        environment
                .fromData("a", "b")
                .sinkTo(fixture.sink("bounded_values", EventSerializer.ofValue(new SimpleStringSchema()))
                        .sink("values of a test")
                        .build());
        environment.execute();
        assertThat(stored("bounded_values")).containsExactlyInAnyOrder("-|a|-", "-|b|-");
        assertThat(fixture.query("SELECT sink FROM eventsql.sink_producer WHERE sink = 'values of a test'"))
                .containsExactly("values of a test");
    }

    @Test
    void unboundedWithoutCheckpoints_isRejected() {
        fixture.eventSql.createStream(StreamSpec.of("endless").withPartitions(1));
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        environment.getCheckpointConfig().disableCheckpointing();
        EventDeserializer<String> values = EventDeserializer.ofValue(new SimpleStringSchema());
        environment
                .fromSource(fixture.source("endless", values).build(), WatermarkStrategy.noWatermarks(), "endless")
                .sinkTo(fixture.sink("endless", EventSerializer.ofValue(new SimpleStringSchema()))
                        .build());
        assertThatIllegalStateException()
                .isThrownBy(environment::getStreamGraph)
                .withMessageContaining("execution.checkpointing.interval");
    }

    @Test
    void bufferIsFull_failsWithTheSettings() {
        fixture.eventSql.createStream(StreamSpec.of("full").withPartitions(1));
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        environment.getCheckpointConfig().disableCheckpointing();
        environment
                .fromData("0123456789", "0123456789")
                .sinkTo(fixture.sink("full", EventSerializer.ofValue(new SimpleStringSchema()))
                        .bufferBytesMax(100)
                        .build());
        assertThatExceptionOfType(Exception.class)
                .isThrownBy(environment::execute)
                .havingRootCause()
                .withMessageContaining("sink.buffer-bytes")
                .withMessageContaining("execution.checkpointing.interval");
        assertThat(stored("full")).isEmpty();
    }
}
