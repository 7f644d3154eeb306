package io.eventsql.runner.limits;

import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import java.sql.SQLException;
import java.util.List;

/**
 * Compares how fast binary COPY, a bare group commit and the library append the same events, and how fast they arrive at
 * a consumer. All write to streams created by the library. With the storage in rows these have the same tables with the same
 * primary key; COPY and the bare group commit always write rows.
 */
final class AppendBenchmark {
    private static final int ASYNC_CALLERS = 4;
    private static final int BATCH_CALLERS = 4;
    private static final int BATCH_EVENTS = 100;
    private static final int WAITING_CALLERS = 50;

    /** One partition for the single connection, two for the pair. */
    private static final int COPY_PARTITIONS = 3;

    private final LimitsContext context;
    private final InterleavedRounds rounds;

    AppendBenchmark(LimitsContext context, LimitsSettings.Rounds rounds) {
        this.context = context;
        this.rounds = new InterleavedRounds(rounds, context.stop(), context.progress());
    }

    /** @throws RunStoppedException after a stop signal */
    AppendResult measure() throws SQLException {
        String copied = context.stream("copy");
        // COPY creates no segments, so the first one must hold all events.
        context.eventSql()
                .createStream(StreamSpec.of(copied)
                        .withPartitions(COPY_PARTITIONS)
                        .withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        StreamTables tables = new StreamTables(context.dataSource(), copied, Storage.ROWS);
        CopyVariant copyOne = new CopyVariant(context, List.of(segment(tables, 0)));
        CopyVariant copyTwo = new CopyVariant(context, List.of(segment(tables, 1), segment(tables, 2)));

        String published = context.stream("publish");
        context.eventSql().createStream(context.streamSpec(published));
        PublishVariant async = PublishVariant.async(context.publishLoad(published, 1), ASYNC_CALLERS);
        PublishVariant batches = PublishVariant.waiting(context.publishLoad(published, BATCH_EVENTS), BATCH_CALLERS);
        PublishVariant single = PublishVariant.waiting(context.publishLoad(published, 1), WAITING_CALLERS);

        List<MeasuredRate> rates = rounds.measure(
                "Append",
                List.of(
                        copyOne,
                        async,
                        copyTwo,
                        batches,
                        single,
                        new EndToEndInterval(context, published, async),
                        new EndToEndInterval(context, published, batches),
                        GroupCommitVariant.create(context, WAITING_CALLERS, 1),
                        new EndToEndInterval(context, published, single),
                        GroupCommitVariant.create(context, WAITING_CALLERS, 2)));
        return AppendResult.of(
                context.meanEventBytes(),
                CopyVariant.EVENTS_PER_COMMIT,
                List.of(rates.get(0), rates.get(2)),
                List.of(rates.get(1), rates.get(3), rates.get(4), rates.get(5), rates.get(6), rates.get(8)),
                List.of(rates.get(7), rates.get(9)));
    }

    private SegmentCopy segment(StreamTables tables, int partition) throws SQLException {
        return new SegmentCopy(context.run(), tables, partition);
    }
}
