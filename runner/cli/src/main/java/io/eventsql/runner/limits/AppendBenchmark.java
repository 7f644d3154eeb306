package io.eventsql.runner.limits;

import io.eventsql.StreamSpec;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsPart;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.List;

/**
 * Compares how fast binary COPY, a bare group commit and the library append the same events, and how fast they arrive at
 * a consumer. All write to streams created by the library. With the storage in rows these have the same tables with the same
 * primary key; COPY and the bare group commit always write rows.
 */
final class AppendBenchmark {
    private static final String RATES = "rates";
    private static final int ASYNC_CALLERS = 4;
    private static final int BATCH_CALLERS = 4;
    private static final int BATCH_EVENTS = 100;
    private static final int WAITING_CALLERS = 50;

    /** One partition for the single connection, two for the pair. */
    private static final int COPY_PARTITIONS = 3;

    private final LimitsContext context;

    AppendBenchmark(LimitsContext context) {
        this.context = context;
    }

    /** @throws RunStoppedException after a stop signal */
    ResultPart measure() throws SQLException {
        String copied = context.stream("copy");
        // COPY creates no segments, so the first one must hold all events.
        context.eventSql()
                .createStream(StreamSpec.of(copied)
                        .withPartitions(COPY_PARTITIONS)
                        .withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        StreamLog log = new StreamLog(context.dataSource(), copied);
        CopyVariant copyOne = new CopyVariant(context, List.of(segment(log, 0)));
        CopyVariant copyTwo = new CopyVariant(context, List.of(segment(log, 1), segment(log, 2)));

        String published = context.stream("publish");
        context.eventSql().createStream(context.streamSpec(published));
        PublishVariant async = PublishVariant.async(context.publishLoad(published, 1), ASYNC_CALLERS);
        PublishVariant batches = PublishVariant.waiting(context.publishLoad(published, BATCH_EVENTS), BATCH_CALLERS);
        PublishVariant single = PublishVariant.waiting(context.publishLoad(published, 1), WAITING_CALLERS);

        List<MeasuredRate> rates = new InterleavedRounds(context)
                .measure(
                        "Append",
                        List.of(
                                copyOne.variant(),
                                async.variant(),
                                copyTwo.variant(),
                                batches.variant(),
                                single.variant(),
                                async.endToEnd(context, published),
                                batches.endToEnd(context, published),
                                GroupCommit.variant(context, WAITING_CALLERS, 1),
                                single.endToEnd(context, published),
                                GroupCommit.variant(context, WAITING_CALLERS, 2)));
        return result(
                List.of(rates.get(0), rates.get(2)),
                List.of(rates.get(1), rates.get(3), rates.get(4), rates.get(5), rates.get(6), rates.get(8)),
                List.of(rates.get(7), rates.get(9)));
    }

    private SegmentCopy segment(StreamLog log, int partition) throws SQLException {
        return new SegmentCopy(context.run(), log, partition);
    }

    /**
     * @param copies the upper bound, by increasing number of connections
     * @param library the library's publish methods, without a consumer, then with one, the last with one event per call
     * @param groupCommits the bare group commit with a consumer
     */
    private ResultPart result(List<MeasuredRate> copies, List<MeasuredRate> library, List<MeasuredRate> groupCommits) {
        PartRecorder part = context.recorder(
                        LimitsPart.APPEND,
                        "the library and COPY into the same tables"
                                + (context.spec().storage().equals("rows") ? "" : " (the library: blocks, COPY: rows)")
                                + ", and a bare group commit; " + context.roundsText())
                .add("event_bytes_mean", Figure.of(context.meanEventBytes(), "bytes"))
                .add("copy_events_per_commit", Figure.of(CopyVariant.EVENTS_PER_COMMIT));
        copies.forEach(copy -> copy.addTo(part, RATES));
        for (MeasuredRate way : library) {
            way.addTo(part, RATES);
            copies.forEach(copy -> part.add(
                    RATES, way.name(), "vs " + copy.name(), way.perSecond().ratioTo(copy.perSecond())));
        }
        groupCommits.forEach(bare -> bare.addTo(part, RATES));
        MeasuredRate best = groupCommits.stream()
                .max(Comparator.comparingDouble(rate -> rate.perSecond().value()))
                .orElseThrow();
        return part.add(
                        "ratios",
                        "one event per call end to end / the faster bare group commit",
                        "value",
                        library.getLast().perSecond().ratioTo(best.perSecond()))
                .part();
    }
}
