package io.eventsql.runner.limits;

import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.plain.CopyProgram;
import io.eventsql.runner.plain.GroupCommitProgram;
import io.eventsql.runner.result.Figure;
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
final class AppendBenchmark extends LimitsBenchmark {
    private static final String RATES = "rates";
    private static final int WAITING_CALLERS = 50;
    private static final int BATCH_CALLERS = 4;
    private static final int BATCH_EVENTS = 100;
    private static final PhaseSpec ASYNC = Calls.async(4);
    private static final PhaseSpec BATCHES = Calls.waiting(BATCH_CALLERS, BATCH_EVENTS);
    private static final PhaseSpec SINGLE = Calls.waiting(WAITING_CALLERS, 1);

    AppendBenchmark(LimitsContext context) {
        super(
                context,
                LimitsPart.APPEND,
                "the library and COPY into the same tables"
                        + (context.spec().storage().equals("rows") ? "" : " (the library: blocks, COPY: rows)")
                        + ", and a bare group commit; " + context.roundsText());
    }

    @Override
    void measure() throws SQLException {
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
                                groupCommit("1 connection", 1, WAITING_CALLERS, 1),
                                consumed(SINGLE),
                                groupCommit("2 connections", 2, WAITING_CALLERS, 1),
                                groupCommit("batches of 100, 1 connection", 1, BATCH_CALLERS, BATCH_EVENTS),
                                groupCommit("batches of 100, 2 connections", 2, BATCH_CALLERS, BATCH_EVENTS)));
        record(
                List.of(rates.get(0), rates.get(2)),
                Stream.of(1, 3, 4, 5, 6, 8).map(rates::get).toList(),
                List.of(rates.get(7), rates.get(9)),
                List.of(rates.get(10), rates.get(11)));
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

    private Variant groupCommit(String name, int connections, int callers, int eventsPerCall) {
        DriverSettings settings =
                new DriverSettings(Map.of("connections", String.valueOf(connections)), context.environment());
        return Variant.ofProgram(
                "bare group commit, " + name, new GroupCommitProgram(), settings, callers, eventsPerCall);
    }

    /**
     * @param copies the upper bound, by increasing number of connections
     * @param library the library's publish methods, without a consumer, then with one: asynchronous, batches, one event per call
     * @param singles the bare group commit with a consumer, one event per call
     * @param batches the same in batches
     */
    private void record(
            List<MeasuredRate> copies,
            List<MeasuredRate> library,
            List<MeasuredRate> singles,
            List<MeasuredRate> batches) {
        part.add("event_bytes_mean", Figure.of(context.meanEventBytes(), "bytes"))
                .add("copy_events_per_commit", Figure.of(CopyProgram.EVENTS_PER_COMMIT));
        copies.forEach(copy -> copy.addTo(part, RATES));
        for (MeasuredRate way : library) {
            way.addTo(part, RATES);
            copies.forEach(copy -> part.add(
                    RATES, way.name(), "vs " + copy.name(), way.perSecond().ratioTo(copy.perSecond())));
        }
        addRatio("one event per call", library.get(library.size() - 1), singles);
        addRatio("batches of 100", library.get(library.size() - 2), batches);
    }

    /** Adds the rates of a bare group commit, and the library's as a part of the faster one. */
    private void addRatio(String calls, MeasuredRate library, List<MeasuredRate> bare) {
        bare.forEach(rate -> rate.addTo(part, RATES));
        MeasuredRate best = bare.stream()
                .max(Comparator.comparingDouble(rate -> rate.perSecond().value()))
                .orElseThrow();
        part.add(
                "ratios",
                calls + " end to end / the faster bare group commit",
                "value",
                library.perSecond().ratioTo(best.perSecond()));
    }
}
