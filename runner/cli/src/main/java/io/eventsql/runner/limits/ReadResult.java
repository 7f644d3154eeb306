package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.measure.Statistics;
import java.util.Comparator;
import java.util.List;

/**
 * How fast a partition was read, by the size of the pages.
 *
 * @param events events in the partition
 * @param neverAnalyzed while the planner had no statistics of its table
 * @param analyzed the same after ANALYZE
 */
public record ReadResult(int events, PageSizeRates neverAnalyzed, PageSizeRates analyzed) {
    /** From here on, a page's fixed costs hardly count: no size should be much slower than another. */
    static final int LARGE_PAGE_EVENTS = 1_000;

    /**
     * All sizes in one state of the tables.
     *
     * @param segments what the planner knew of each segment that holds events
     * @param pages by the size of the page
     * @param slowestLargePageEvents the slowest size of at least 1,000 events
     * @param slowestLargeToFastest its rate in parts of the fastest one's of all sizes
     */
    public record PageSizeRates(
            List<StreamTables.SegmentStatistics> segments,
            List<PageSizeRate> pages,
            int slowestLargePageEvents,
            double slowestLargeToFastest) {

        /** @param pages at least one of at least 1,000 events */
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
     * One size.
     *
     * @param pageEvents events asked for in each call
     * @param rate how fast it was; its events a call may be fewer, at the partition's end or at the limit of bytes
     */
    public record PageSizeRate(
            int pageEvents, @JsonUnwrapped MeasuredRate rate) {}
}
