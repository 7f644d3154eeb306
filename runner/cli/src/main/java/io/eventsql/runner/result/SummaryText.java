package io.eventsql.runner.result;

import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.spec.RunSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Renders the summary of a run as text. */
public final class SummaryText {

    private SummaryText() {}

    /** Returns the lines of the report. */
    public static List<String> of(Summary summary) {
        Summary.Counts counts = summary.counts();
        Summary.Rates rates = summary.rates();
        List<String> lines = new ArrayList<>();
        lines.add("Benchmark run " + summary.verdict().run() + ": "
                + RunText.verdict(summary.verdict().passed(), summary.verdict().interrupted()));
        summary.verdict().problems().forEach(problem -> lines.add("  " + problem));
        lines.addAll(RunText.errors(counts.publishErrorsByClass()));
        lines.add("");
        lines.add(configuration(summary.configuration()));
        lines.add(String.format(
                Locale.ROOT,
                "Published %d of %d events, %.1f per second",
                counts.eventsPublished(),
                counts.eventsAsked(),
                rates.publishRate()));
        lines.add(String.format(
                Locale.ROOT,
                "Consumed %d events, %.1f per second, the last one %.3f ms after the last acknowledgement",
                counts.eventsConsumed(),
                rates.consumeRate(),
                rates.consumeAfterPublishMs()));
        lines.add(String.format(
                Locale.ROOT,
                "Lost %d, duplicated %d, out of order %d, publish errors %d; before that %d events of warm-up",
                counts.eventsLost(),
                counts.eventsDuplicated(),
                counts.orderViolations(),
                counts.publishErrors(),
                counts.warmupEvents()));
        if (counts.partitionsOfSeveralMembers() > 0
                && summary.configuration().settings().events().keyed()) {
            lines.add("More than one member handled " + RunText.count(counts.partitionsOfSeveralMembers(), "partition")
                    + ": order is checked within each member, not across members");
        }
        if (counts.eventsHandledBeforeIntended() > 0) {
            lines.add("The clocks differ: " + counts.eventsHandledBeforeIntended()
                    + " events were apparently handled before they were sent; their latency counts as 0");
        }
        lines.add("");
        lines.add(RunText.LATENCY_HEADING);
        lines.add(RunText.row(
                "intended send to acknowledgement", summary.latencies().publishLatencyMs()));
        lines.add(RunText.row("intended send to handler", summary.latencies().endToEndLatencyMs()));
        if (summary.configuration().rateAsked() > 0) {
            lines.add(RunText.row("call to acknowledgement", summary.latencies().serviceLatencyMs()));
            lines.add(RunText.row("intended send to call", summary.latencies().scheduleDelayMs()));
        }
        lines.add("");
        lines.addAll(summary.conditions().lines());
        summary.perRunner().forEach(runner -> {
            StartBarrier.ClockOffset app = runner.appClock();
            if (app != null) {
                lines.add(String.format(
                        Locale.ROOT,
                        "The app's clock is %.3f ms ahead of runner %d's, to within %.3f ms",
                        app.aheadMs(),
                        runner.runner(),
                        app.uncertaintyMs()));
            }
        });
        lines.addAll(machine(summary.machine()));
        return lines;
    }

    /** Returns the lines about the environment of the run and the command that reproduces it. */
    private static List<String> machine(Summary.Machine machine) {
        Summary.Provenance provenance = machine.provenance();
        return List.of(
                "PostgreSQL " + machine.postgresVersion() + " with fsync " + machine.fsync()
                        + " and synchronous_commit " + machine.synchronousCommit() + ", Java " + machine.javaVersion()
                        + ", " + provenance.cpus() + " CPUs, " + machine.os()
                        + (provenance.recycledWalMb() > 0
                                ? ", " + provenance.recycledWalMb() + " MB of WAL files recycled"
                                : ""),
                "Commit " + provenance.gitCommit(),
                "Command: " + provenance.command());
    }

    private static String configuration(Summary.Configuration configuration) {
        RunSettings.Load load = configuration.settings().load();
        RunSettings.Events events = configuration.settings().events();
        String pace = load.hasRate()
                ? load.eventsPerSecond() + " events per second each"
                : "as fast as possible from " + load.callers()
                        + (load.async() ? " callers that do not wait" : " callers");
        return RunText.count(configuration.shards(), "shard") + " with "
                + RunText.count(configuration.partitions(), "partition")
                + " each, "
                + (configuration.members() > 1 ? RunText.count(configuration.members(), "member") + ", " : "")
                + RunText.count(configuration.runners(), "runner") + ", " + pace + ", "
                + RunText.count(load.eventsPerCall(), "event")
                + " a call, " + (events.keyed() ? RunText.count(events.keys(), "key") + " a runner" : "no keys");
    }
}
