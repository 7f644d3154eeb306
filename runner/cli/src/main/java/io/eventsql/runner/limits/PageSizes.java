package io.eventsql.runner.limits;

import io.eventsql.EventPosition;
import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** How fast one partition is read in pages of several sizes, without statistics of its table and with them. */
final class PageSizes {
    private static final List<Integer> PAGE_EVENTS = List.of(10, 100, 1_000, 5_000, 10_000);
    private static final int FILL_CALL_EVENTS = 1_000;

    /** What {@code pg_class.reltuples} is while nobody has counted. */
    private static final double UNKNOWN = -1;

    private final LimitsBench bench;
    private final InterleavedRounds rounds;
    private final int events;

    /** @param events events in the partition */
    PageSizes(LimitsBench bench, LimitsSettings.Rounds rounds, int events) {
        this.bench = bench;
        this.rounds = new InterleavedRounds(rounds, bench.stop(), bench.progress());
        this.events = events;
    }

    /**
     * @throws StoppedException after a stop signal
     * @throws IllegalStateException if the tables are not in the state in which they are to be read
     */
    ReadResult measure() throws SQLException {
        String stream = bench.stream("read");
        // One segment holds all: those made later would be outside of what is switched off here.
        bench.eventSql()
                .createStream(StreamSpec.of(stream)
                        .withPartitions(1)
                        .withSegmentSize(Math.max(StreamSpec.DEFAULT_SEGMENT_SIZE, events)));
        StreamTables tables = new StreamTables(bench.dataSource(), stream);
        tables.switchAutovacuumOff();
        bench.progress().println("Read: publishing " + events + " events to be read");
        PublishContender.async(bench.publishing(stream, FILL_CALL_EVENTS), 1).publish(events);
        bench.checkStopped();

        List<StreamTables.Statistics> unknown = requireNeverAnalyzed(tables);
        List<ReadResult.OfSize> withoutStatistics = read("Read, never analyzed", stream);
        requireNeverAnalyzed(tables);
        tables.analyze();
        List<StreamTables.Statistics> known = requireAnalyzed(tables);
        List<ReadResult.OfSize> withStatistics = read("Read, analyzed", stream);
        return new ReadResult(
                events, ReadResult.Sizes.of(unknown, withoutStatistics), ReadResult.Sizes.of(known, withStatistics));
    }

    private List<ReadResult.OfSize> read(String what, String stream) throws SQLException {
        int shard = bench.eventSql().shards().getFirst().number();
        EventPosition start = new EventPosition(stream, shard, 0, 0);
        List<PageContender> sizes = PAGE_EVENTS.stream()
                .map(size -> new PageContender(bench, start, events, size))
                .toList();
        List<MeasuredRate> rates = rounds.measure(what, sizes);
        List<ReadResult.OfSize> pages = new ArrayList<>();
        for (int i = 0; i < rates.size(); i++) {
            pages.add(new ReadResult.OfSize(PAGE_EVENTS.get(i), rates.get(i)));
        }
        return pages;
    }

    private static List<StreamTables.Statistics> requireNeverAnalyzed(StreamTables tables) throws SQLException {
        List<StreamTables.Statistics> segments = tables.statistics();
        for (StreamTables.Statistics segment : segments) {
            if (segment.reltuples() != UNKNOWN || segment.analyzed() > 0) {
                throw new IllegalStateException("A table has been analyzed that should never be: " + segment);
            }
        }
        return requireSome(segments);
    }

    private static List<StreamTables.Statistics> requireAnalyzed(StreamTables tables) throws SQLException {
        List<StreamTables.Statistics> segments = tables.statistics();
        for (StreamTables.Statistics segment : segments) {
            if (segment.reltuples() == UNKNOWN) {
                throw new IllegalStateException("A table has not been analyzed: " + segment);
            }
        }
        return requireSome(segments);
    }

    private static List<StreamTables.Statistics> requireSome(List<StreamTables.Statistics> segments) {
        if (segments.isEmpty()) {
            throw new IllegalStateException("No table holds the events that were published");
        }
        return segments;
    }
}
