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
    private static final AtomicReference<@Nullable Recording> RECORDING = new AtomicReference<>();

    private Latency() {}

    /**
     * What is measured now.
     *
     * @param query whose results count: the tasks of a canceled job end a little later
     * @param fromMs the time from which on what completes a result counts
     */
    private record Recording(String query, long fromMs, Histogram micros) {}

    /** Runs a query over what is published from now on; returns microseconds, exact to a millisecond. */
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
        tables.environment()
                .toChangelogStream(table)
                .filter(new Recorder(query.name(), time))
                .sinkTo(new DiscardingSink<>());
        JobClient job = tables.executeAsync();
        cluster.publishAtRate(eventsPerSecond, WARM_UP.toSeconds(), new Positions(2));
        Histogram micros = new SynchronizedHistogram(TimeUnit.MILLISECONDS.toMicros(LATENCY_MS_MAX), DIGITS);
        RECORDING.set(new Recording(query.name(), System.currentTimeMillis(), micros));
        cluster.publishAtRate(eventsPerSecond, seconds, new Positions(3));
        TimeUnit.SECONDS.sleep(1);
        RECORDING.set(null);
        job.cancel().get();
        return micros;
    }

    /** Records the age of each row that arrives. */
    private static final class Recorder implements FilterFunction<Row> {
        private static final long serialVersionUID = 1L;
        private final String query;
        private final String time;

        private Recorder(String query, String time) {
            this.query = query;
            this.time = time;
        }

        @Override
        public boolean filter(Row row) {
            long ms = millis(row.getField(time));
            Recording recording = RECORDING.get();
            if (recording != null
                    && row.getKind() != RowKind.UPDATE_BEFORE
                    && recording.query().equals(query)
                    && ms >= recording.fromMs()) {
                long ageMs = Math.clamp(System.currentTimeMillis() - ms, 0L, LATENCY_MS_MAX);
                recording.micros().recordValue(TimeUnit.MILLISECONDS.toMicros(ageMs));
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
