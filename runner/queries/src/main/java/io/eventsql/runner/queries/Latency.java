package io.eventsql.runner.queries;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.SynchronizedHistogram;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Table;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.jspecify.annotations.Nullable;

/**
 * The time from what completes a result until the job has its row: for an event the time at which it was published, for a window its
 * end, for a total the time of its last event.
 */
final class Latency {
    private static final Duration WARM_UP = Duration.ofSeconds(3);
    private static final long LATENCY_MS_MAX = 600_000;
    private static final int DIGITS = 3;
    private static final List<String> TIMES = List.of("published_at", "window_end", "last_at_ms");
    private static final Map<String, String> SETTINGS =
            Map.of("pipeline.auto-watermark-interval", "20 ms", "execution.buffer-timeout.interval", "5 ms");
    /** Where the tasks, which run in this JVM, record. */
    private static final AtomicReference<Histogram> RECORDED = new AtomicReference<>(newHistogram());

    private Latency() {}

    private static Histogram newHistogram() {
        return new SynchronizedHistogram(LATENCY_MS_MAX, DIGITS);
    }

    /** Runs a query over what is published from now on. */
    static Histogram measure(
            MeasuredCluster cluster, Path folder, Query query, int eventsPerSecond, long seconds, int parallelism)
            throws Exception {
        Map<String, String> options = new HashMap<>(cluster.options());
        options.put("scan.startup.mode", "latest");
        options.put("scan.poll-interval", "10 ms");
        FlinkTables tables = new FlinkTables(folder.resolve("positions.sql"), options, parallelism, SETTINGS);
        Table table = tables.table(query.sql());
        String time = TIMES.stream()
                .filter(table.getResolvedSchema().getColumnNames()::contains)
                .findFirst()
                .orElseThrow();
        tables.environment().toChangelogStream(table).filter(new Recorder(time)).sinkTo(new DiscardingSink<>());
        JobClient job = tables.executeAsync();
        cluster.publishAtRate(eventsPerSecond, WARM_UP.toSeconds(), new Positions(2));
        RECORDED.set(newHistogram());
        cluster.publishAtRate(eventsPerSecond, seconds, new Positions(3));
        TimeUnit.SECONDS.sleep(1);
        job.cancel().get();
        return RECORDED.get();
    }

    /** Records the age of each row that arrives. */
    private static final class Recorder implements FilterFunction<Row> {
        private static final long serialVersionUID = 1L;
        private final String time;

        private Recorder(String time) {
            this.time = time;
        }

        @Override
        public boolean filter(Row row) {
            if (row.getKind() != RowKind.UPDATE_BEFORE) {
                long ageMs = System.currentTimeMillis() - millis(row.getField(time));
                RECORDED.get().recordValue(Math.clamp(ageMs, 0L, LATENCY_MS_MAX));
            }
            return true;
        }
    }

    private static long millis(@Nullable Object time) {
        return switch (time) {
            case Instant instant -> instant.toEpochMilli();
            case LocalDateTime utc -> utc.toInstant(ZoneOffset.UTC).toEpochMilli();
            case Long ms -> ms;
            case null, default -> throw new IllegalStateException("no time: " + time);
        };
    }
}
