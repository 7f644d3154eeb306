package io.eventsql.runner.limits;

import io.eventsql.EventPosition;
import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * Measures how fast one partition is read in pages of several sizes: by calls of {@code EventSql.read}, with and without
 * planner statistics of its table, and by a consumer.
 */
final class ReadBenchmark {
    private static final List<Integer> PAGE_EVENTS = List.of(10, 100, 1_000, 5_000, 10_000);
    private static final List<Integer> CONSUMER_PAGE_EVENTS = List.of(10, 100, 1_000);
    private static final int FILL_CALL_EVENTS = 1_000;

    /** The value of {@code pg_class.reltuples} before the first VACUUM or ANALYZE. */
    private static final double UNKNOWN = -1;

    private final LimitsContext context;
    private final InterleavedRounds rounds;
    private final int events;

    /** @param events the number of events in the partition */
    ReadBenchmark(LimitsContext context, LimitsSettings.Rounds rounds, int events) {
        this.context = context;
        this.rounds = new InterleavedRounds(rounds, context.stop(), context.progress());
        this.events = events;
    }

    /**
     * @throws RunStoppedException after a stop signal
     * @throws IllegalStateException if the tables are not in the expected state
     */
    ReadResult measure() throws SQLException {
        String stream = context.stream("read");
        // One segment holds all events, because autovacuum is disabled only for existing segments.
        context.eventSql()
                .createStream(context.streamSpec(stream)
                        .withPartitions(1)
                        .withSegmentSize(Math.max(StreamSpec.DEFAULT_SEGMENT_SIZE, events)));
        StreamTables tables = new StreamTables(context.dataSource(), stream, context.storage());
        tables.disableAutovacuum();
        context.progress().println("Read: publishing " + events + " events");
        PublishVariant.async(context.publishLoad(stream, FILL_CALL_EVENTS), 1).publish(events);
        context.checkStopped();

        List<StreamTables.SegmentStatistics> unknown = requireNeverAnalyzed(tables);
        List<ReadResult.PageSizeRate> withoutStatistics = read("Read, never analyzed", stream);
        requireNeverAnalyzed(tables);
        tables.analyze();
        List<StreamTables.SegmentStatistics> known = requireAnalyzed(tables);
        List<ReadResult.PageSizeRate> withStatistics = read("Read, analyzed", stream);
        List<ConsumerReadVariant> consumers = CONSUMER_PAGE_EVENTS.stream()
                .map(size -> new ConsumerReadVariant(context, stream, events, size))
                .toList();
        return new ReadResult(
                events,
                ReadResult.PageSizeRates.of(unknown, withoutStatistics),
                ReadResult.PageSizeRates.of(known, withStatistics),
                ratesOf("Read by consumers", CONSUMER_PAGE_EVENTS, consumers));
    }

    private List<ReadResult.PageSizeRate> read(String what, String stream) throws SQLException {
        int shard = context.eventSql().shards().getFirst().number();
        EventPosition start = new EventPosition(stream, shard, 0, 0);
        List<PageReadVariant> sizes = PAGE_EVENTS.stream()
                .map(size -> new PageReadVariant(context, start, events, size))
                .toList();
        return ratesOf(what, PAGE_EVENTS, sizes);
    }

    private List<ReadResult.PageSizeRate> ratesOf(String what, List<Integer> sizes, List<? extends Variant> variants)
            throws SQLException {
        List<MeasuredRate> rates = rounds.measure(what, variants);
        List<ReadResult.PageSizeRate> pages = new ArrayList<>();
        for (int i = 0; i < rates.size(); i++) {
            pages.add(new ReadResult.PageSizeRate(sizes.get(i), rates.get(i)));
        }
        return pages;
    }

    private static List<StreamTables.SegmentStatistics> requireNeverAnalyzed(StreamTables tables) throws SQLException {
        List<StreamTables.SegmentStatistics> segments = tables.statistics();
        for (StreamTables.SegmentStatistics segment : segments) {
            if (segment.reltuples() != UNKNOWN || segment.analyzed() > 0) {
                throw new IllegalStateException("Table was analyzed unexpectedly: " + segment);
            }
        }
        return requireNonEmpty(segments);
    }

    private static List<StreamTables.SegmentStatistics> requireAnalyzed(StreamTables tables) throws SQLException {
        List<StreamTables.SegmentStatistics> segments = tables.statistics();
        for (StreamTables.SegmentStatistics segment : segments) {
            if (segment.reltuples() == UNKNOWN) {
                throw new IllegalStateException("Table was not analyzed: " + segment);
            }
        }
        return requireNonEmpty(segments);
    }

    private static List<StreamTables.SegmentStatistics> requireNonEmpty(List<StreamTables.SegmentStatistics> segments) {
        if (segments.isEmpty()) {
            throw new IllegalStateException("No table contains the published events");
        }
        return segments;
    }
}
