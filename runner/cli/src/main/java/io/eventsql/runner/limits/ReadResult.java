package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.measure.Figures;
import java.util.Comparator;
import java.util.List;

/**
 * How fast a partition was read, by the size of the pages.
 *
 * @param events events in the partition
 * @param neverAnalyzed while the planner had no statistics of its table
 * @param analyzed the same after ANALYZE
 */
public record ReadResult(int events, Sizes neverAnalyzed, Sizes analyzed) {
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
    public record Sizes(
            List<StreamTables.Statistics> segments,
            List<OfSize> pages,
            int slowestLargePageEvents,
            double slowestLargeToFastest) {

        /** @param pages at least one of at least 1,000 events */
        static Sizes of(List<StreamTables.Statistics> segments, List<OfSize> pages) {
            Comparator<OfSize> bySpeed =
                    Comparator.comparingDouble(page -> page.rate().eventsPerSecond());
            OfSize fastest = pages.stream().max(bySpeed).orElseThrow();
            OfSize slowest = pages.stream()
                    .filter(page -> page.pageEvents() >= LARGE_PAGE_EVENTS)
                    .min(bySpeed)
                    .orElseThrow();
            return new Sizes(
                    segments,
                    pages,
                    slowest.pageEvents(),
                    Figures.ratio(
                            slowest.rate().eventsPerSecond(), fastest.rate().eventsPerSecond()));
        }
    }

    /**
     * One size.
     *
     * @param pageEvents events asked for in each call
     * @param rate how fast it was; its events a call may be fewer, at the partition's end or at the limit of bytes
     */
    public record OfSize(int pageEvents, @JsonUnwrapped MeasuredRate rate) {}
}
