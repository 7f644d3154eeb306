package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.flink.EventDeserializer;
import io.eventsql.flink.EventSqlSource;
import io.eventsql.flink.FlinkFixture;
import io.eventsql.reader.LogEvent;
import io.eventsql.reader.StreamPosition;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.jspecify.annotations.Nullable;

/**
 * A job from source to sink: counts the events of each key, and writes an event for each that has its number and the count. What
 * it must write is a query in SQL over its input.
 */
final class CountingJob {
    /** How many events all jobs of this JVM have counted, again after failures. */
    static final AtomicInteger COUNTED = new AtomicInteger();

    private static final int OUT_PARTITIONS = 4;

    private final FlinkFixture fixture;
    private final String in;
    private final String out;

    CountingJob(FlinkFixture fixture, String name) {
        this.fixture = fixture;
        in = name + "_in";
        out = name + "_out";
        fixture.eventSql.createStream(StreamSpec.of(in).withPartitions(2));
        fixture.eventSql.createStream(StreamSpec.of(out).withPartitions(OUT_PARTITIONS));
    }

    /** What is counted: key and number. The sink gets the same with the count, separated by bars. */
    private static final class KeyAndNumber implements EventDeserializer<String> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(LogEvent event, Collector<String> collector) {
            collector.collect(event.key() + "|" + event.text().replaceAll("\\D", ""));
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }

    private static final class Count extends RichMapFunction<String, String> {
        private static final long serialVersionUID = 1L;
        private transient ValueState<Integer> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.INT));
        }

        @Override
        public String map(String event) throws Exception {
            Integer former = count.value();
            count.update(former == null ? 1 : former + 1);
            COUNTED.incrementAndGet();
            return event + "|" + count.value();
        }
    }

    private static SinkEvent serialize(String counted) {
        String[] parts = counted.split("\\|", -1);
        return SinkEvent.ofText(parts[0], "{\"n\": %s, \"count\": %s}".formatted(parts[1], parts[2]));
    }

    void publish(int from, int to) {
        fixture.publish(in, from, to);
    }

    EventSqlSinkBuilder<String> sink() {
        return fixture.sink(out, CountingJob::serialize);
    }

    /** @param end {@code null}: the job does not end */
    void add(StreamExecutionEnvironment environment, @Nullable StreamPosition end, Sink<String> sink) {
        var source = fixture.source(in, new KeyAndNumber());
        environment
                .fromSource(
                        (end == null ? source : source.endAt(end)).build(),
                        EventSqlSource.watermarks(Duration.ofSeconds(1)),
                        in)
                .uid("source")
                .keyBy(event -> event.substring(0, event.indexOf('|')))
                .map(new Count())
                .uid("count")
                .sinkTo(sink)
                .uid("sink");
    }

    long written() {
        return fixture.query("SELECT count(*) FROM eventsql.events_" + out).stream()
                .mapToLong(Long::parseLong)
                .sum();
    }

    /** Gives the stream of the results more partitions. */
    void grow(int partitions) {
        fixture.eventSql.grow(out, partitions);
    }

    /** Returns how many events are in the partitions that the stream of the results has got by growing. */
    long writtenToNewPartitions() {
        return fixture
                .query("SELECT count(*) FROM eventsql.events_%s WHERE partition >= %d".formatted(out, OUT_PARTITIONS))
                .stream()
                .mapToLong(Long::parseLong)
                .sum();
    }

    /**
     * Asserts that each event was counted and written once, in the order of its key. By one growth keys move to partitions with
     * greater numbers.
     */
    void assertEachEventOnce(int events) {
        List<String> rows = fixture.query("""
                SELECT key, v ->> 'n', v ->> 'count', row_number() OVER (PARTITION BY key ORDER BY partition, event_offset)
                FROM eventsql.events_%s, LATERAL (SELECT convert_from(value, 'UTF8')::jsonb AS v) AS v""".formatted(out));
        assertThat(rows).hasSize(events).containsExactlyInAnyOrderElementsOf(fixture.query("""
                SELECT key, convert_from(value, 'UTF8')::jsonb ->> 'n', place, place
                FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY event_offset) AS place
                    FROM eventsql.events_%s) AS e""".formatted(in)));
    }
}
