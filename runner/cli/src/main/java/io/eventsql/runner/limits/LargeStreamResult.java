package io.eventsql.runner.limits;

import io.eventsql.runner.measure.RatioInterval;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A stream with many events compared with one that has few.
 *
 * @param events the events stored in the large stream before the first round
 * @param publish the publish rates: small, large
 * @param endToEnd the rates of a consumer during publishing: small, large
 * @param publishRatio the rate of the large stream divided by that of the small one
 * @param endToEndRatio likewise
 * @param small what statements cost in the small stream, after the rounds
 * @param large what statements cost in the large stream, after the rounds
 */
public record LargeStreamResult(
        long events,
        List<MeasuredRate> publish,
        List<MeasuredRate> endToEnd,
        RatioInterval publishRatio,
        RatioInterval endToEndRatio,
        Costs small,
        Costs large) {

    /**
     * The size of a stream, and what statements cost in it.
     *
     * @param events the events stored
     * @param tables the number of its tables
     * @param bytes the size of the tables, with indexes
     * @param append an append of one event
     * @param fetch a fetch of ten events
     */
    public record Costs(
            long events, long tables, long bytes, StreamLog.StatementCost append, StreamLog.StatementCost fetch) {}

    /** @param rates publish small, publish large, end to end small, end to end large */
    static LargeStreamResult of(long events, List<MeasuredRate> rates, Costs small, Costs large) {
        return new LargeStreamResult(
                events,
                rates.subList(0, 2),
                rates.subList(2, 4),
                rates.get(1).ratioTo(rates.get(0)),
                rates.get(3).ratioTo(rates.get(2)),
                small,
                large);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(
                Locale.ROOT, "LARGE stream of %,d events, and one of %,d", large.events(), small.events()));
        lines.addAll(lines(publish, publishRatio));
        lines.addAll(lines(endToEnd, endToEndRatio));
        lines.add(lines("small", small));
        lines.add(lines("large", large));
        return lines;
    }

    private static List<String> lines(List<MeasuredRate> rates, RatioInterval ratio) {
        List<String> lines = new ArrayList<>();
        for (MeasuredRate rate : rates) {
            lines.add(String.format(Locale.ROOT, "%-24s%,12.0f events/s", rate.name(), rate.eventsPerSecond()));
        }
        lines.add("large / small, median of the rounds (95 % interval): " + ratio.text());
        return lines;
    }

    private static String lines(String name, Costs costs) {
        return String.format(
                Locale.ROOT,
                "%s: %,d tables, %,.0f MB; append %d locks, %.0f us; fetch %d locks, %.0f us",
                name,
                costs.tables(),
                costs.bytes() / 1e6,
                costs.append().locks(),
                costs.append().micros(),
                costs.fetch().locks(),
                costs.fetch().micros());
    }
}
