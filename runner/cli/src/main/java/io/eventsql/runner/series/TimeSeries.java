package io.eventsql.runner.series;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
