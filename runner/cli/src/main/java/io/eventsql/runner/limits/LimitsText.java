package io.eventsql.runner.limits;

import io.eventsql.Storage;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.report.SummaryText;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Renders the result of a limits run as text. */
public final class LimitsText {

    private LimitsText() {}

    /** Returns the lines of the report. */
    public static List<String> of(LimitsResult result) {
        List<String> lines = new ArrayList<>();
        lines.add("Limits run " + result.run()
                + (result.settings().storage() == Storage.ROWS ? "" : ", streams in blocks, COPY into rows")
                + (result.interrupted() ? ": INTERRUPTED" : ""));
        LimitsRun.Measurements measurements = result.measurements();
        @Nullable AppendResult append = measurements.append();
        if (append != null) {
            lines.addAll(append(append, result.settings().rounds()));
        }
        @Nullable ReadResult read = measurements.read();
        if (read != null) {
            lines.addAll(read(read, result.settings().rounds()));
        }
        @Nullable SnapshotResult snapshot = measurements.snapshot();
        if (snapshot != null) {
            lines.addAll(snapshot(snapshot, result.settings().snapshot()));
        }
        @Nullable HandlersResult handlers = measurements.handlers();
        if (handlers != null) {
            lines.addAll(handlers(handlers));
        }
        @Nullable TransactionsResult transactions = measurements.transactions();
        if (transactions != null) {
            lines.addAll(transactions(transactions, result.settings().rounds()));
        }
        @Nullable OutboxResult outbox = measurements.outbox();
        if (outbox != null) {
            lines.addAll(OutboxText.of(outbox, result.settings().outbox()));
        }
        @Nullable LargeStreamResult large = measurements.large();
        if (large != null) {
            lines.addAll(large.lines());
        }
        @Nullable RetentionResult retention = measurements.retention();
        if (retention != null) {
            lines.addAll(retention.lines());
        }
        @Nullable CompactionResult compaction = measurements.compaction();
        if (compaction != null) {
            lines.addAll(compaction.lines());
        }
        @Nullable CostResult cost = measurements.cost();
        if (cost != null) {
            lines.addAll(cost.lines("COST of events of about 230 bytes, published and handled"));
        }
        @Nullable CostResult fanout = measurements.fanout();
        if (fanout != null) {
            lines.addAll(fanout.lines("FANOUT: one and ten consumers of a stream in one process"));
        }
        @Nullable TailResult tail = measurements.tail();
        if (tail != null) {
            lines.addAll(tail.lines());
        }
        @Nullable ScheduledResult scheduled = measurements.scheduled();
        if (scheduled != null) {
            lines.addAll(scheduled.lines());
        }
        lines.add("");
        lines.addAll(SummaryText.machine(result.machine()));
        return lines;
    }

    private static List<String> append(AppendResult append, LimitsSettings.Rounds rounds) {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(
                Locale.ROOT,
                "APPEND events of %.0f bytes: library and COPY into the same tables, committed every %,d rows;" + " %s",
                append.eventBytesMean(),
                append.copyEventsPerCommit(),
                medianOf(rounds)));
        String ofCopies = append.copy().stream()
                .map(copy -> String.format(Locale.ROOT, "%31s", "vs " + copy.name()))
                .collect(Collectors.joining());
        lines.add(String.format(
                Locale.ROOT, "%-38s%12s%22s%s%25s", "", "events/s", "lowest to highest", ofCopies, "95 % interval"));
        append.copy().forEach(copy -> lines.add(rate(copy)));
        for (AppendResult.LibraryRate way : append.library()) {
            String ratios = way.ratioToCopy().stream()
                    .map(ratio -> String.format(Locale.ROOT, "%31.3f", ratio))
                    .collect(Collectors.joining());
            lines.add(rate(way.rate())
                    + ratios
                    + String.format(Locale.ROOT, "%25s", way.toLastCopy().text()));
        }
        append.groupCommit().forEach(bare -> lines.add(rate(bare)));
        lines.add("One event per call end to end, of the faster bare group commit (95 % interval): "
                + append.singleToGroupCommit().text());
        return lines;
    }

    private static String rate(MeasuredRate rate) {
        DoubleSummaryStatistics rounds = rate.roundsEventsPerSecond().stream()
                .mapToDouble(Double::doubleValue)
                .summaryStatistics();
        String range = String.format(Locale.ROOT, "%,.0f to %,.0f", rounds.getMin(), rounds.getMax());
        return String.format(Locale.ROOT, "%-38s%,12.0f%22s", rate.name(), rate.eventsPerSecond(), range);
    }

    private static List<String> read(ReadResult read, LimitsSettings.Rounds rounds) {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(
                Locale.ROOT, "READ a partition of %,d events from its start; %s", read.events(), medianOf(rounds)));
        lines.add(String.format(
                Locale.ROOT,
                "%-14s%16s%16s%12s%16s",
                "events/s",
                "never analyzed",
                "after ANALYZE",
                "ratio",
                "events/call"));
        for (int i = 0; i < read.neverAnalyzed().pages().size(); i++) {
            MeasuredRate without = read.neverAnalyzed().pages().get(i).rate();
            MeasuredRate with = read.analyzed().pages().get(i).rate();
            lines.add(String.format(
                    Locale.ROOT,
                    "%-14s%,16.0f%,16.0f%12.3f%,16.0f",
                    without.name(),
                    without.eventsPerSecond(),
                    with.eventsPerSecond(),
                    Statistics.ratio(without.eventsPerSecond(), with.eventsPerSecond()),
                    without.eventsPerCall()));
        }
        lines.add(slowest("Never analyzed", read.neverAnalyzed()));
        lines.add(slowest("After ANALYZE", read.analyzed()));
        for (ReadResult.PageSizeRate pages : read.consumers()) {
            lines.add(rate(pages.rate()));
        }
        return lines;
    }

    private static String slowest(String when, ReadResult.PageSizeRates sizes) {
        return String.format(
                Locale.ROOT,
                "%s (reltuples %s): the slowest page size of at least %,d is %,d, at %.3f of the fastest page size",
                when,
                sizes.segments().stream()
                        .map(segment -> String.format(Locale.ROOT, "%.0f", segment.reltuples()))
                        .collect(Collectors.joining(", ")),
                ReadResult.LARGE_PAGE_EVENTS,
                sizes.slowestLargePageEvents(),
                sizes.slowestLargeToFastest());
    }

    private static List<String> snapshot(SnapshotResult snapshot, LimitsSettings.Snapshot settings) {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(
                Locale.ROOT,
                "SNAPSHOT: publish latency in ms at %,d events/s, one event per call, %,d s without and %,d s with a"
                        + " long-running snapshot",
                settings.eventsPerSecond(),
                settings.seconds(),
                settings.seconds()));
        snapshot.streams().forEach(stream -> lines.addAll(stream(stream)));
        return lines;
    }

    private static List<String> stream(SnapshotResult.StreamResult stream) {
        SnapshotResult.Run without = stream.without();
        SnapshotResult.Run with = stream.with();
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(
                Locale.ROOT,
                "%-14s%14s%14s%14s%14s",
                stream.partitions() + (stream.partitions() == 1 ? " partition" : " partitions"),
                "without p50",
                "without p99",
                "with p50",
                "with p99"));
        for (int tenth = 0; tenth < without.tenths().size(); tenth++) {
            lines.add(latencies(
                    "tenth " + (tenth + 1),
                    without.tenths().get(tenth).latencyMs(),
                    with.tenths().get(tenth).latencyMs()));
        }
        lines.add(latencies("all", without.latencyMs(), with.latencyMs()));
        lines.add(String.format(
                Locale.ROOT,
                "p99, last tenth / first tenth: without %.2f, with %.2f",
                without.p99LastToFirst(),
                with.p99LastToFirst()));
        lines.add(String.format(
                Locale.ROOT,
                "p99, with / without: all %.2f, last tenth %.2f",
                stream.p99WithToWithout(),
                stream.p99WithToWithoutLastTenth()));
        lines.add(String.format(
                Locale.ROOT,
                "At the end: %,d dead rows without, %,d with; the snapshot was %,d transactions old",
                without.deadRows(),
                with.deadRows(),
                with.snapshotAgeTransactions()));
        lines.addAll(errors("without", without));
        lines.addAll(errors("with", with));
        return lines;
    }

    private static String latencies(String when, Percentiles without, Percentiles with) {
        return String.format(
                Locale.ROOT,
                "%-14s%14.3f%14.3f%14.3f%14.3f",
                when,
                without.p50(),
                without.p99(),
                with.p50(),
                with.p99());
    }

    private static List<String> errors(String kind, SnapshotResult.Run run) {
        return run.publishErrors().stream()
                .map(error -> error.events() + " events " + kind + " a snapshot FAILED with " + error.errorClass()
                        + ": " + error.firstMessage())
                .toList();
    }

    private static List<String> transactions(TransactionsResult transactions, LimitsSettings.Rounds rounds) {
        return List.of(
                "",
                "TRANSACTIONS: Spring transactions that write a business row and one event; " + medianOf(rounds),
                String.format(Locale.ROOT, "%-38s%12s%22s", "", "events/s", "lowest to highest"),
                rate(transactions.plainRow()),
                rate(transactions.publish()),
                rate(transactions.relayed()),
                String.format(
                        Locale.ROOT,
                        "Publish / plain row: %.3f; relayed: measured until the last event is in its stream",
                        transactions.publishToPlainRow()));
    }

    private static List<String> handlers(HandlersResult handlers) {
        return List.of(
                "",
                String.format(
                        Locale.ROOT,
                        "HANDLERS of %,d ms on one partition with events of %,d keys",
                        handlers.handlerMs(),
                        handlers.keys()),
                String.format(
                        Locale.ROOT,
                        "%-24s%12s%12s%12s%12s%14s",
                        "",
                        "events",
                        "events/s",
                        "lost",
                        "duplicated",
                        "out of order"),
                handlers("sequential", handlers.sequential()),
                handlers(handlers.parallel().keyConcurrency() + " keys in parallel", handlers.parallel()),
                String.format(
                        Locale.ROOT,
                        "Speedup by key: %.1f; target: %,d events/s in order per key",
                        handlers.parallelToSequential(),
                        handlers.barEventsPerSecond()));
    }

    private static String handlers(String name, HandlersResult.HandlerRun run) {
        return String.format(
                Locale.ROOT,
                "%-24s%,12d%,12.1f%,12d%,12d%,14d",
                name,
                run.events(),
                run.eventsPerSecond(),
                run.eventsLost(),
                run.eventsDuplicated(),
                run.orderViolations());
    }

    private static String medianOf(LimitsSettings.Rounds rounds) {
        return "median of " + rounds.count() + (rounds.count() == 1 ? " round of " : " rounds of ")
                + String.format(Locale.ROOT, "%.1f", rounds.seconds()) + " s";
    }
}
