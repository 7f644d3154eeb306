package io.eventsql.runner.limits;

import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.plain.CopyProgram;
import io.eventsql.runner.plain.GroupCommitProgram;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import io.eventsql.runner.result.ResultPart;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Compares how fast binary COPY, a bare group commit and the library append the same events, and how fast they arrive at
 * a consumer. All write to new streams of the library. With the storage in rows these have the same tables with the same
 * primary key; COPY and the bare group commit always write rows.
 */
final class AppendBenchmark {
    private static final String RATES = "rates";
    private static final int WAITING_CALLERS = 50;
    private static final PhaseSpec ASYNC = Calls.async(4);
    private static final PhaseSpec BATCHES = Calls.waiting(4, 100);
    private static final PhaseSpec SINGLE = Calls.waiting(WAITING_CALLERS, 1);

    private final LimitsContext context;

    AppendBenchmark(LimitsContext context) {
        this.context = context;
    }

    /** @throws RunStoppedException after a stop signal */
    ResultPart measure() throws SQLException {
        List<MeasuredRate> rates = new InterleavedRounds(context)
                .measure(
                        "Append",
                        List.of(
                                copy("1 connection", 1),
                                published(ASYNC),
                                copy("2 connections", 2),
                                published(BATCHES),
                                published(SINGLE),
                                consumed(ASYNC),
                                consumed(BATCHES),
                                groupCommit("1 connection", 1),
                                consumed(SINGLE),
                                groupCommit("2 connections", 2)));
        return result(
                List.of(rates.get(0), rates.get(2)),
                Stream.of(1, 3, 4, 5, 6, 8).map(rates::get).toList(),
                List.of(rates.get(7), rates.get(9)));
    }

    private Variant published(PhaseSpec phase) {
        return Variant.ofPhase(context, "publish", context.loadedStream(), phase);
    }

    private Variant consumed(PhaseSpec phase) {
        return Variant.ofPhase(
                context,
                "publish",
                context.loadedStream().withConsumers(1),
                phase.withName(phase.name() + ", end to end"));
    }

    private Variant copy(String connections, int callers) {
        DriverSettings settings = new DriverSettings(Map.of(), context.environment());
        return Variant.ofProgram(
                "COPY BINARY, " + connections, new CopyProgram(), settings, callers, CopyProgram.EVENTS_PER_COMMIT);
    }

    private Variant groupCommit(String connections, int number) {
        DriverSettings settings =
                new DriverSettings(Map.of("connections", String.valueOf(number)), context.environment());
        return Variant.ofProgram(
                "bare group commit, " + connections, new GroupCommitProgram(), settings, WAITING_CALLERS, 1);
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
                .add("copy_events_per_commit", Figure.of(CopyProgram.EVENTS_PER_COMMIT));
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
