package io.eventsql.runner.limits;

import io.eventsql.runner.measure.ErrorCount;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Renders the result of the outbox benchmark as text. */
final class OutboxText {
    private static final double MEGABYTE = 1 << 20;

    private OutboxText() {}

    static List<String> of(OutboxResult outbox, LimitsSettings.OutboxLoad settings) {
        OutboxResult.Run without = outbox.without();
        OutboxResult.Run with = outbox.with();
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(
                Locale.ROOT,
                "OUTBOX: %,d transactions/s with one event each and as many direct publishes; %,d s without and"
                        + " %,d s with a long-running snapshot",
                settings.eventsPerSecond(),
                settings.seconds(),
                settings.seconds()));
        lines.add("direct p99 in ms, maximum outbox size in MiB, maximum outbox backlog in events");
        lines.add(String.format(
                Locale.ROOT,
                "%-10s%14s%8s%10s%14s%8s%10s",
                "",
                "without p99",
                "MiB",
                "events",
                "with p99",
                "MiB",
                "events"));
        for (int tenth = 0; tenth < without.tenths().size(); tenth++) {
            lines.add(String.format(
                    Locale.ROOT,
                    "%-10s%s%s",
                    "tenth " + (tenth + 1),
                    of(without.tenths().get(tenth)),
                    of(with.tenths().get(tenth))));
        }
        lines.add(run("Without", without));
        lines.add(run("With", with));
        lines.add(String.format(
                Locale.ROOT,
                "Direct p99, with / without: %.2f; outbox size with a snapshot, last tenth / second tenth: %.2f; the"
                        + " snapshot was %,d transactions old",
                outbox.p99WithToWithout(),
                outbox.outboxBytesLastToSecondTenth(),
                with.snapshotAgeTransactions()));
        return lines;
    }

    private static String of(OutboxResult.Tenth tenth) {
        return String.format(
                Locale.ROOT,
                "%14.3f%8.2f%,10d",
                tenth.plainLatencyMs().p99(),
                tenth.outboxBytesMax() / MEGABYTE,
                tenth.outboxEventsMax());
    }

    private static String run(String name, OutboxResult.Run run) {
        long failed = run.errors().stream().mapToLong(ErrorCount::events).sum();
        return String.format(
                Locale.ROOT,
                "%s: direct p50 %.3f, p99 %.3f ms; transactions p50 %.3f, p99 %.3f ms; %,d committed, %,d in the stream,"
                        + " %,d failed",
                name,
                run.plainLatencyMs().p50(),
                run.plainLatencyMs().p99(),
                run.transactionLatencyMs().p50(),
                run.transactionLatencyMs().p99(),
                run.transactions(),
                run.eventsInStream(),
                failed);
    }
}
