package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.LongStream;

/**
 * How fast the same events are appended by binary COPY and by the library. Both write to streams that the library has
 * made, so into the same tables with the same primary key.
 */
final class AppendLimit {
    private static final int ASYNC_CALLERS = 4;
    private static final int BATCH_CALLERS = 4;
    private static final int BATCH_EVENTS = 100;
    private static final int WAITING_CALLERS = 50;

    /** One for the single connection, two for two of them. */
    private static final int COPY_PARTITIONS = 3;

    private static final int EVENTS_WEIGHED = 1_000;

    private final LimitsBench bench;
    private final InterleavedRounds rounds;

    AppendLimit(LimitsBench bench, LimitsSettings.Rounds rounds) {
        this.bench = bench;
        this.rounds = new InterleavedRounds(rounds, bench.stop(), bench.progress());
    }

    /** @throws StoppedException after a stop signal */
    AppendResult measure() throws SQLException {
        String copied = bench.stream("copy");
        // COPY makes no segments: the first one holds all.
        bench.eventSql()
                .createStream(StreamSpec.of(copied)
                        .withPartitions(COPY_PARTITIONS)
                        .withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        StreamTables tables = new StreamTables(bench.dataSource(), copied);
        CopyContender copyOne = new CopyContender(bench, List.of(segment(tables, 0)));
        CopyContender copyTwo = new CopyContender(bench, List.of(segment(tables, 1), segment(tables, 2)));

        String published = bench.stream("publish");
        bench.eventSql().createStream(StreamSpec.of(published));
        PublishContender async = PublishContender.async(bench.publishing(published, 1), ASYNC_CALLERS);
        PublishContender batches = PublishContender.waiting(bench.publishing(published, BATCH_EVENTS), BATCH_CALLERS);
        PublishContender single = PublishContender.waiting(bench.publishing(published, 1), WAITING_CALLERS);

        List<MeasuredRate> rates = rounds.measure("Append", List.of(copyOne, async, copyTwo, batches, single));
        return AppendResult.of(
                meanEventBytes(),
                CopyContender.EVENTS_PER_COMMIT,
                List.of(rates.get(0), rates.get(2)),
                List.of(rates.get(1), rates.get(3), rates.get(4)));
    }

    private SegmentCopy segment(StreamTables tables, int partition) {
        return new SegmentCopy(bench.run(), tables, partition);
    }

    private double meanEventBytes() {
        long now = bench.clock().epochMicros();
        return LongStream.range(0, EVENTS_WEIGHED)
                .mapToInt(number -> new BenchmarkEvent(bench.run(), 0, false, number, now).encode().length)
                .average()
                .orElseThrow();
    }
}
