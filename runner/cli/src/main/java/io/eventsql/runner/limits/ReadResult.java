package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.measure.Statistics;
import java.util.Comparator;
import java.util.List;

/**
 * The result of the read benchmark, by page size.
 *
 * @param events the number of events in the partition
 * @param neverAnalyzed the rates without planner statistics
 * @param analyzed the rates after ANALYZE
 * @param consumers the rates of a consumer, by {@code pageEvents}, after ANALYZE
 */
public record ReadResult(
        int events, PageSizeRates neverAnalyzed, PageSizeRates analyzed, List<PageSizeRate> consumers) {
    /** From this size on, fixed costs per page are negligible, so that rates should differ little. */
    static final int LARGE_PAGE_EVENTS = 1_000;

    /**
     * The rates of all page sizes in one state of the tables.
     *
     * @param segments the planner statistics of each segment with events
     * @param pages the rates by page size
     * @param slowestLargePageEvents the slowest page size of at least 1,000 events
     * @param slowestLargeToFastest its rate divided by that of the fastest page size
     */
    public record PageSizeRates(
            List<StreamTables.SegmentStatistics> segments,
            List<PageSizeRate> pages,
            int slowestLargePageEvents,
            double slowestLargeToFastest) {

        /** @param pages the rates, at least one for a page of at least 1,000 events */
        static PageSizeRates of(List<StreamTables.SegmentStatistics> segments, List<PageSizeRate> pages) {
            Comparator<PageSizeRate> bySpeed =
                    Comparator.comparingDouble(page -> page.rate().eventsPerSecond());
            PageSizeRate fastest = pages.stream().max(bySpeed).orElseThrow();
            PageSizeRate slowest = pages.stream()
                    .filter(page -> page.pageEvents() >= LARGE_PAGE_EVENTS)
                    .min(bySpeed)
                    .orElseThrow();
            return new PageSizeRates(
                    segments,
                    pages,
                    slowest.pageEvents(),
                    Statistics.ratio(
                            slowest.rate().eventsPerSecond(), fastest.rate().eventsPerSecond()));
        }
    }

    /**
     * The rate of one page size.
     *
     * @param pageEvents the events requested per call
     * @param rate the measured rate; its events per call may be fewer, at the end of the partition or at the byte limit
     */
    public record PageSizeRate(
            int pageEvents, @JsonUnwrapped MeasuredRate rate) {}
}
