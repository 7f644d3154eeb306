package io.eventsql.runner.queries;

import io.eventsql.ConsumerSpec;
import io.eventsql.Subscription;
import io.eventsql.flink.EventDeserializer;
import io.eventsql.flink.EventSqlSource;
import io.eventsql.reader.CursorSpec;
import io.eventsql.reader.EventReader;
import io.eventsql.reader.LogEvent;
import io.eventsql.reader.StreamCursor;
import io.eventsql.reader.StreamPosition;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.util.Collector;

/** How many stored events per second are read in different ways. Each measurement reads the whole stream once. */
final class Throughput {
    private static final Duration POLL = Duration.ofSeconds(1);

    private final MeasuredCluster cluster;
    private final Path folder;
    private final long events;
    private final int parallelism;
    private final AtomicInteger consumers = new AtomicInteger();

    Throughput(MeasuredCluster cluster, Path folder, long events, int parallelism) {
        this.cluster = cluster;
        this.folder = folder;
        this.events = events;
        this.parallelism = parallelism;
    }

    private double perSecond(long nanos) {
        return (double) events * TimeUnit.SECONDS.toNanos(1) / nanos;
    }

    /** The library's consumer with its defaults and a handler of batches that does nothing but count. */
    double plainConsumer() throws InterruptedException {
        CountDownLatch done = new CountDownLatch(1);
        AtomicLong left = new AtomicLong(events);
        long begun = System.nanoTime();
        ConsumerSpec spec = ConsumerSpec.of(Positions.STREAM, "plain_" + consumers.incrementAndGet());
        Subscription member = cluster.eventSql().subscribeBatch(spec, batch -> {
            if (left.addAndGet(-batch.size()) == 0) {
                done.countDown();
            }
        });
        try {
            done.await();
            return perSecond(System.nanoTime() - begun);
        } finally {
            member.close();
            cluster.eventSql().consumer(spec.stream(), spec.name()).delete();
        }
    }

    /** The reader that the source stands on, in one thread. */
    double reader() throws InterruptedException {
        long begun = System.nanoTime();
        long left = events;
        try (EventReader reader = EventReader.open(cluster.dataSources())) {
            StreamCursor cursor = reader.cursor(CursorSpec.of(Positions.STREAM));
            while (left > 0) {
                List<LogEvent> page = cursor.poll(POLL);
                left -= page.size();
            }
        }
        return perSecond(System.nanoTime() - begun);
    }

    /** The source in a job that drops its records. */
    double source() throws Exception {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        environment.setParallelism(parallelism);
        Map<String, String> options = cluster.options();
        EventSqlSource<byte[]> source = EventSqlSource.builder(Positions.STREAM, new Values())
                .urls(options.getOrDefault("url", "").split(";", -1))
                .credentials(options.getOrDefault("username", ""), options.getOrDefault("password", ""))
                .endAt(StreamPosition.LATEST)
                .build();
        environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), Positions.STREAM)
                .sinkTo(new DiscardingSink<>());
        return perSecond(TimeUnit.MILLISECONDS.toNanos(environment.execute().getNetRuntime()));
    }

    /** Emits the values as they are. */
    private static final class Values implements EventDeserializer<byte[]> {
        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(LogEvent event, Collector<byte[]> out) {
            out.collect(event.value());
        }

        @Override
        public TypeInformation<byte[]> getProducedType() {
            return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
        }
    }

    /** A query of Flink, from the start of its tasks to their end. */
    double query(Query query) throws Exception {
        Map<String, String> options = new HashMap<>(cluster.options());
        options.put("scan.bounded.mode", "latest");
        return query(query, folder.resolve("positions.sql"), options);
    }

    /** The same query over a topic with the same events. */
    double kafkaQuery(Query query, KafkaTopic topic) throws Exception {
        return query(query, folder.resolve("kafka").resolve("positions.sql"), topic.options());
    }

    private double query(Query query, Path file, Map<String, String> options) throws Exception {
        FlinkTables tables = new FlinkTables(file, options, parallelism, Map.of());
        TableResult result = tables.startToNowhere(query.sql());
        long ms = result.getJobClient()
                .orElseThrow()
                .getJobExecutionResult()
                .get()
                .getNetRuntime();
        return perSecond(TimeUnit.MILLISECONDS.toNanos(ms));
    }
}
