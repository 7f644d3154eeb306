package io.eventsql.runner.series;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A run second by second; each list has a value for each second, {@code null} where there is none. Rates are events/s.
 *
 * @param intervalSeconds always 1
 * @param t seconds since what is measured began
 * @param phase the phase of that second; {@code null} behind the last one
 * @param offeredRate events whose call was meant to happen in that second, missed ones too
 * @param publishRate events acknowledged
 * @param consumeRate events delivered, to all consumers together
 * @param failed events that failed
 * @param missed events whose slot was left out
 * @param inFlight events sent and not answered, at the second's end
 * @param lag events acknowledged and not delivered, at the second's end, as the mean of the consumers
 * @param publishP50Ms latency from the intended send, of events acknowledged in that second
 * @param publishP99Ms the same
 * @param publishMaxMs the same
 * @param endToEndP50Ms latency from the intended send, of events delivered in that second
 * @param endToEndP99Ms the same
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

    /** Its columns by their names in files, in order. */
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
