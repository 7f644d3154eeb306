package io.eventsql.runner.measure;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A run second by second. Each list has one value per second, {@code null} if unknown. Rates are events/s.
 *
 * @param intervalSeconds always 1
 * @param t the seconds since the start of the measurement
 * @param phase the phase of that second; {@code null} after the last phase
 * @param offeredRate the events scheduled for that second, including missed ones
 * @param publishRate the acknowledged events
 * @param consumeRate the events delivered to all consumers together
 * @param failed the failed events
 * @param missed the events of missed slots
 * @param inFlight the events sent but not answered at the end of the second
 * @param lag the events acknowledged but not delivered at the end of the second, averaged over the consumers
 * @param publishP50Ms the latency from the intended send of the events acknowledged in that second
 * @param publishP99Ms likewise
 * @param publishMaxMs likewise
 * @param endToEndP50Ms the latency from the intended send of the events delivered in that second
 * @param endToEndP99Ms likewise
 */
public record TimeSeries(
        int intervalSeconds,
        List<Integer> t,
        List<@Nullable String> phase,
        List<@Nullable Double> offeredRate,
        List<@Nullable Double> publishRate,
        List<@Nullable Double> consumeRate,
        List<@Nullable Double> failed,
        List<@Nullable Double> missed,
        List<@Nullable Double> inFlight,
        List<@Nullable Double> lag,
        List<@Nullable Double> publishP50Ms,
        List<@Nullable Double> publishP99Ms,
        List<@Nullable Double> publishMaxMs,
        List<@Nullable Double> endToEndP50Ms,
        List<@Nullable Double> endToEndP99Ms) {

    /**
     * One row of the table.
     *
     * @param consumed the delivered events; {@code null} if unknown
     * @param publish the latencies of the events acknowledged in that second; {@code null} if there were none
     * @param endToEnd the latencies of the events delivered in that second; likewise
     */
    public record Row(
            @Nullable String phase,
            long offered,
            long published,
            @Nullable Long consumed,
            long failed,
            long missed,
            long inFlight,
            @Nullable Double lag,
            @Nullable Percentiles publish,
            @Nullable Percentiles endToEnd) {}

    /** Returns the table of consecutive seconds. */
    public static TimeSeries of(List<Row> rows) {
        List<@Nullable String> phases = new ArrayList<>();
        rows.forEach(row -> phases.add(row.phase));
        return new TimeSeries(
                1,
                IntStream.range(0, rows.size()).boxed().toList(),
                phases,
                column(rows, row -> (double) row.offered),
                column(rows, row -> (double) row.published),
                column(rows, row -> row.consumed == null ? null : Double.valueOf(row.consumed.doubleValue())),
                column(rows, row -> (double) row.failed),
                column(rows, row -> (double) row.missed),
                column(rows, row -> (double) row.inFlight),
                column(rows, Row::lag),
                latencies(rows, Row::publish, Percentiles::p50),
                latencies(rows, Row::publish, Percentiles::p99),
                latencies(rows, Row::publish, Percentiles::max),
                latencies(rows, Row::endToEnd, Percentiles::p50),
                latencies(rows, Row::endToEnd, Percentiles::p99));
    }

    private static List<@Nullable Double> column(List<Row> rows, Function<Row, @Nullable Double> value) {
        List<@Nullable Double> values = new ArrayList<>();
        rows.forEach(row -> values.add(value.apply(row)));
        return values;
    }

    private static List<@Nullable Double> latencies(
            List<Row> rows, Function<Row, @Nullable Percentiles> latency, ToDoubleFunction<Percentiles> statistic) {
        return column(rows, row -> {
            Percentiles ms = latency.apply(row);
            return ms == null ? null : Double.valueOf(statistic.applyAsDouble(ms));
        });
    }

    /** Returns the columns by their names in files, in order. */
    public Map<String, List<? extends @Nullable Object>> columns() {
        Map<String, List<? extends @Nullable Object>> columns = new LinkedHashMap<>();
        columns.put("t", t);
        columns.put("phase", phase);
        columns.put("offered_rate", offeredRate);
        columns.put("publish_rate", publishRate);
        columns.put("consume_rate", consumeRate);
        columns.put("failed", failed);
        columns.put("missed", missed);
        columns.put("in_flight", inFlight);
        columns.put("lag", lag);
        columns.put("publish_p50_ms", publishP50Ms);
        columns.put("publish_p99_ms", publishP99Ms);
        columns.put("publish_max_ms", publishMaxMs);
        columns.put("end_to_end_p50_ms", endToEndP50Ms);
        columns.put("end_to_end_p99_ms", endToEndP99Ms);
        return columns;
    }
}
