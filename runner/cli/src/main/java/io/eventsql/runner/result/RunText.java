package io.eventsql.runner.result;

import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.ReplayerCounts;
import io.eventsql.runner.result.RunResult.PhaseMetrics;
import io.eventsql.runner.result.RunResult.SearchResult;
import io.eventsql.runner.result.RunResult.StressResult;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** Renders the result of a run as text. */
public final class RunText {
    static final String LATENCY_HEADING = String.format(
            Locale.ROOT, "%-34s%10s%10s%10s%10s%10s", "Latency in ms", "p50", "p90", "p99", "p99.9", "max");

    private static final double PERCENT = 100;

    private RunText() {}

    /** Returns the lines of the report. */
    public static List<String> of(RunResult result) {
        List<String> lines = new ArrayList<>(heading(result.identity(), result.verdict(), result.driver()));
        JsonNode trials = result.trials();
        List<ResultPart> parts = result.parts();
        if (trials != null) {
            parts = List.of(TrialsPart.of(trials, result.copyLimit()));
        }
        if (parts == null) {
            lines.addAll(phases(result));
        } else {
            parts.forEach(part -> {
                lines.add("");
                lines.addAll(PartText.of(part));
            });
        }
        SearchResult search = result.search();
        if (search != null) {
            lines.add("");
            lines.addAll(search(search, result.settings().search()));
        }
        StressResult stress = result.stress();
        if (stress != null) {
            lines.add("");
            lines.addAll(stress(stress));
        }
        lines.add("");
        ResourceSeries resources = result.resources();
        Double sampling = resources == null ? null : resources.samplerShare();
        if (sampling != null) {
            lines.add(ResourceSeries.samplerLine(sampling));
        }
        lines.addAll(machine(result.databases(), result.machine(), result.identity()));
        return lines;
    }

    private static List<String> phases(RunResult result) {
        List<String> lines = new ArrayList<>();
        lines.add(configuration(result.settings()));
        result.phases().forEach(phase -> {
            lines.add("");
            lines.addAll(phase(phase));
        });
        lines.add("");
        lines.add(consumed(result));
        if (!result.replayers().isEmpty()) {
            lines.add(replayed(result.replayers()));
        }
        return lines;
    }

    /** Returns the lines about the run, its verdict and the measured system. */
    private static List<String> heading(
            RunResult.Identity identity, RunResult.Verdict verdict, RunResult.DriverInfo driver) {
        List<String> lines = new ArrayList<>();
        lines.add("Workload " + identity.workload() + ", run " + identity.run() + " (" + identity.runId() + "): "
                + verdict(verdict.passed(), verdict.interrupted()));
        verdict.problems().forEach(problem -> lines.add("  " + problem));
        lines.add(identity.description());
        lines.add("");
        lines.add("Driver " + driver.name() + " on " + driver.version() + "; durability: " + driver.durability()
                + "; order: " + driver.order() + "; delivery: " + driver.delivery());
        return lines;
    }

    static String verdict(boolean passed, boolean interrupted) {
        if (interrupted) {
            return "INTERRUPTED";
        }
        return passed ? "passed" : "FAILED";
    }

    /** Returns a line for each class of failure. */
    static List<String> errors(List<ErrorCount> errors) {
        return errors.stream()
                .map(error -> "  " + error.events() + " × " + error.errorClass() + ": " + error.firstMessage())
                .toList();
    }

    private static String configuration(RunSpec spec) {
        RunSpec.StreamsSpec streams = spec.streams();
        return count(streams.streams(), "stream") + " with " + count(streams.partitions(), "partition") + " each, "
                + count(streams.consumers(), "consumer")
                + (streams.replayers() > 0 ? " and " + count(streams.replayers(), "replayer") : "") + " of each, "
                + (spec.events().bytes() == 0 ? "about 230" : spec.events().bytes()) + " bytes per event, "
                + (spec.events().keys() == 0 ? "no keys" : count(spec.events().keys(), "key"));
    }

    private static List<String> phase(PhaseMetrics phase) {
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "Phase %s%s: %.1f s, offered %.1f per second",
                phase.name(),
                phase.measured() ? "" : " (not measured)",
                phase.seconds(),
                phase.offeredRate()));
        lines.add(String.format(
                Locale.ROOT,
                "Published %d events, %.1f per second (%.3f MB/s); failed %d, missed %d",
                phase.eventsPublished(),
                phase.publishRate(),
                phase.publishMbPerSecond(),
                phase.eventsFailed(),
                phase.eventsMissed()));
        lines.addAll(errors(phase.errors()));
        if (phase.endToEndLatencyMs() != null) {
            lines.add(String.format(
                    Locale.ROOT, "Consumed %.1f per second by all consumers together", phase.consumeRate()));
        }
        lines.add(LATENCY_HEADING + String.format(Locale.ROOT, "%10s", "mean"));
        lines.add(rowWithMean("intended send to acknowledgement", phase.publishLatencyMs()));
        lines.add(rowWithMean("call to acknowledgement", phase.serviceLatencyMs()));
        Percentiles delay = phase.scheduleDelayMs();
        if (delay != null) {
            lines.add(rowWithMean("intended send to call", delay));
        }
        Percentiles endToEnd = phase.endToEndLatencyMs();
        if (endToEnd != null) {
            lines.add(rowWithMean("intended send to consumer", endToEnd));
        }
        return lines;
    }

    private static String consumed(RunResult result) {
        if (result.consumers().isEmpty()) {
            return "No consumers";
        }
        return String.format(
                Locale.ROOT,
                "Received %d events; lost %d, duplicated %d, out of order %d",
                sum(result, ConsumerCounts::eventsSeen),
                sum(result, ConsumerCounts::eventsLost),
                sum(result, ConsumerCounts::eventsDuplicated),
                sum(result, ConsumerCounts::orderViolations));
    }

    private static String replayed(List<ReplayerCounts> replayers) {
        return String.format(
                Locale.ROOT,
                "Replayed %d events in %d passes from the start",
                replayers.stream().mapToLong(ReplayerCounts::events).sum(),
                replayers.stream().mapToLong(ReplayerCounts::passes).sum());
    }

    private static List<String> search(SearchResult search, RunSpec.@Nullable SearchSpec asked) {
        List<String> lines = new ArrayList<>();
        if (asked != null) {
            lines.add(String.format(
                    Locale.ROOT,
                    "Highest rate at which p%s of the %s latency is at most %s ms: %d per second",
                    asked.percentile(),
                    asked.latency().name().toLowerCase(Locale.ROOT),
                    asked.limitMs(),
                    search.bestRate()));
        }
        search.trials()
                .forEach(trial -> lines.add(String.format(
                        Locale.ROOT,
                        "  %d per second: %.3f ms, %s",
                        trial.rate(),
                        trial.latencyMs(),
                        trial.held() ? "held" : "did not hold")));
        return lines;
    }

    private static List<String> stress(StressResult stress) {
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "Phase %s: %.1f %% of the maximum rate accepted, %.1f %% of the slots missed",
                stress.overload(),
                stress.acceptedOfMaximum() * PERCENT,
                stress.missedShare() * PERCENT));
        stress.residentMb().forEach((process, memory) -> {
            Double start = memory.start();
            Double end = memory.end();
            if (start != null && end != null) {
                lines.add(String.format(
                        Locale.ROOT,
                        "Resident memory of %s: %.0f MB at the start, %.0f MB at the end of the phase",
                        process,
                        start,
                        end));
            }
        });
        Integer recovery = stress.recoverySeconds();
        lines.add(
                recovery == null
                        ? "Latencies did not return to the level before the phase"
                        : "Latencies returned to the level before the phase within " + count(recovery + 1L, "second"));
        return lines;
    }

    /** Returns the lines about the environment of the run and the command that reproduces it. */
    private static List<String> machine(
            List<DatabaseInfo> databases, RunResult.Machine machine, RunResult.Identity identity) {
        List<String> lines = new ArrayList<>();
        for (DatabaseInfo database : databases) {
            lines.add(String.format(
                    Locale.ROOT,
                    "%s: PostgreSQL %s with fsync %s and synchronous_commit %s%s, clock %.3f ms ahead of the runner's",
                    database.name(),
                    database.version(),
                    database.fsync(),
                    database.synchronousCommit(),
                    database.synchronousStandbyNames().isEmpty()
                            ? ""
                            : ", waiting for " + database.synchronousStandbyNames(),
                    database.clockOffsetMs()));
        }
        lines.add("Java " + machine.javaVersion() + ", " + machine.cpus() + " CPUs, " + machine.memoryMb()
                + " MB of memory, " + machine.os()
                + (machine.recycledWalMb() == null
                        ? ""
                        : ", " + machine.recycledWalMb() + " MB of WAL files recycled"));
        lines.add("Commit " + identity.gitCommit());
        lines.add("Command: " + identity.command());
        return lines;
    }

    private static long sum(RunResult result, ToLongFunction<ConsumerCounts> field) {
        return result.consumers().stream().mapToLong(field).sum();
    }

    static String count(long number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }

    /** Returns the percentiles of a latency, below {@link #LATENCY_HEADING}. */
    static String row(String what, Percentiles ms) {
        return String.format(
                Locale.ROOT,
                "%-34s %9.3f %9.3f %9.3f %9.3f %9.3f",
                what,
                ms.p50(),
                ms.p90(),
                ms.p99(),
                ms.p999(),
                ms.max());
    }

    private static String rowWithMean(String what, Percentiles ms) {
        return row(what, ms) + String.format(Locale.ROOT, " %9.3f", ms.mean());
    }
}
