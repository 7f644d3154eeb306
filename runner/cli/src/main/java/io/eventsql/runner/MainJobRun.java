package io.eventsql.runner;

import io.eventsql.runner.consumption.CompilationTime;
import io.eventsql.runner.consumption.RebalanceWait;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.consumption.WarmupWatch;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.phases.LoadSession;
import io.eventsql.runner.phases.Progress;
import io.eventsql.runner.phases.ProgressDisplay;
import io.eventsql.runner.result.RunnerResult.Ending;
import io.eventsql.runner.result.RunnerText;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSettings;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.WorkloadKind;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The steps of the main job, in order: wait until the members share the consumer's partitions, warm up, wait until the
 * warm-up is consumed, wait for the other runners, publish the measured events, wait until they are consumed. After a
 * stop signal, the remaining steps are skipped except for a short final wait.
 */
final class MainJobRun {
    private static final Duration RUNNERS_TIMEOUT = Duration.ofSeconds(60);
    /** Longer than the lease of a dead member. */
    private static final Duration MEMBERS_TIMEOUT = Duration.ofSeconds(60);

    /**
     * The collaborators of a run.
     *
     * @param session sends the load of both phases; its events are consumed by apps
     * @param members waits until the members share the consumer's partitions
     * @param barrier synchronizes the start of all runners
     * @param compilation the compilation times of this runner and the apps
     * @param lastHandledAtMicros when the app handled the last measured event of this runner, in epoch microseconds;
     *     empty if unknown
     * @param clock the time source
     * @param stop aborts the run
     */
    record RunContext(
            LoadSession session,
            RebalanceWait members,
            StartBarrier barrier,
            CompilationTime.Source compilation,
            Supplier<OptionalLong> lastHandledAtMicros,
            LoadClock clock,
            StopSignal stop) {}

    /**
     * The outcome of a run.
     *
     * @param warmup the warm-up events
     * @param measured the measured events
     * @param ending how it ended
     * @param warmth how the warm-up ended; {@code null} if there was none
     * @param measuredCompilation the compilation time during the measured phase; {@code null} if unknown
     */
    record Outcome(
            PhaseMeasurement warmup,
            PhaseMeasurement measured,
            Ending ending,
            WarmupWatch.@Nullable Outcome warmth,
            @Nullable CompilationTime measuredCompilation) {}

    private final RunSettings settings;
    private final RunContext context;
    private final PrintStream out;
    private final ProgressDisplay progress;
    private WarmupWatch.@Nullable Outcome warmth;
    private @Nullable CompilationTime measuredCompilation;

    /**
     * @param out receives the human-readable report
     * @param progress displays the progress
     */
    MainJobRun(RunSettings settings, RunContext context, PrintStream out, ProgressDisplay progress) {
        this.settings = settings;
        this.context = context;
        this.out = out;
        this.progress = progress;
    }

    /** Returns the main job as a run of a workload: a warm-up and a measured phase, consumed by apps. */
    static RunSpec spec(RunSettings settings) {
        RunSettings.Events events = settings.events();
        Integer bytes = events.eventBytes();
        return new RunSpec(
                "publish",
                WorkloadKind.PUBLISH,
                RunSpec.EnvironmentSpec.ONE_DATABASE,
                new RunSpec.SystemSpec("eventsql", Map.of()),
                new RunSpec.EventsSpec(bytes == null ? 0 : bytes, events.keyed() ? events.keys() : 0),
                new RunSpec.StreamsSpec(
                        1,
                        settings.stream().partitions(),
                        0,
                        0,
                        settings.stream().consumeTimeoutSeconds()),
                List.of(phase("warm-up", settings.load()).asWarmup(), phase("measured", settings.load())),
                null,
                null,
                null,
                null,
                Map.of());
    }

    private static PhaseSpec phase(String name, RunSettings.Load load) {
        return load.hasRate()
                ? PhaseSpec.ofRate(name, load.eventsPerSecond(), load.eventsPerCall())
                : PhaseSpec.ofCallers(name, load.callers(), load.async(), load.eventsPerCall());
    }

    /** @throws IOException if the app does not respond, or its members or the other runners are not ready in time */
    Outcome run() throws IOException {
        PhaseMeasurement none = PhaseMeasurement.empty();
        if (!context.members.await(MEMBERS_TIMEOUT, context.stop)) {
            return outcome(none, none, false);
        }
        PhaseMeasurement warmup = warmUp();
        if (!context.session.drain() || context.stop.isRaised()) {
            return outcome(warmup, none, false);
        }
        OptionalLong startAtMicros = context.barrier.await(
                "measured", settings.stream().consumeTimeout().plus(RUNNERS_TIMEOUT), context.stop);
        if (startAtMicros.isEmpty()) {
            return outcome(warmup, none, false);
        }
        CompilationTime before = compilation();
        PhaseMeasurement measured = publishMeasured(startAtMicros.getAsLong());
        CompilationTime after = compilation();
        measuredCompilation = before == null || after == null ? null : after.since(before);
        RunnerText text = new RunnerText(settings);
        text.published(measured).forEach(out::println);
        out.println();
        out.println("Waiting for consumption....");
        out.println();
        boolean consumed = context.session.drain();
        Long firstIntended = measured.firstIntendedAtMicros();
        if (consumed && firstIntended != null) {
            // Positions lag slightly behind. The app knows the exact time.
            long lastHandled = context.lastHandledAtMicros.get().orElseGet(context.clock::epochMicros);
            text.consumed(measured.publishedEvents(), lastHandled - firstIntended)
                    .forEach(out::println);
        }
        return outcome(warmup, measured, consumed);
    }

    private PhaseMeasurement warmUp() throws IOException {
        RunSettings.Load load = settings.load();
        if (load.warmupSeconds() == 0) {
            return PhaseMeasurement.empty();
        }
        ClockAnchor anchor = ClockAnchor.now(context.clock);
        if (load.warmsUpUntilWarm()) {
            return warmUpUntilWarm(anchor);
        }
        long events = load.eventsPerSecond() * load.warmupSeconds();
        LoadPhase time = load.hasRate()
                ? LoadPhase.ofEvents(true, anchor, anchor.nanos(), events)
                : LoadPhase.ofNanos(
                        true,
                        anchor,
                        anchor.nanos(),
                        Duration.ofSeconds(load.warmupSeconds()).toNanos());
        warmth = WarmupWatch.Outcome.fixed(load.warmupSeconds());
        return warmUp(time, events);
    }

    /** Warms up until the JVMs of all runners and apps hardly compile, within the bounds of the settings. */
    private PhaseMeasurement warmUpUntilWarm(ClockAnchor anchor) {
        RunSettings.Load load = settings.load();
        WarmupWatch.Bounds bounds = new WarmupWatch.Bounds(
                Duration.ofSeconds(load.warmupSeconds()), Duration.ofSeconds(load.warmupMaxSeconds()));
        try (WarmupWatch watch =
                new WarmupWatch(bounds, context.compilation, context.barrier, context.clock, anchor, out::println)) {
            watch.start();
            PhaseMeasurement warmup = warmUp(LoadPhase.until(true, anchor, anchor.nanos(), watch::endNanos), 0);
            warmth = watch.outcome();
            return warmup;
        }
    }

    /** @param total the expected number of events; 0 if unknown */
    private PhaseMeasurement warmUp(LoadPhase time, long total) {
        PhaseMeasurement warmup = send(spec(settings).phases().getFirst(), time, progress.start("Warming up", total));
        out.println("Warmed up with " + warmup.publishedEvents() + " events");
        RunnerText.errors(warmup.errors()).forEach(out::println);
        return warmup;
    }

    private PhaseMeasurement publishMeasured(long startAtMicros) {
        ClockAnchor anchor = ClockAnchor.now(context.clock);
        long events = settings.load().events();
        LoadPhase time = LoadPhase.ofEvents(false, anchor, anchor.nanosAt(startAtMicros), events);
        return send(spec(settings).phases().getLast(), time, progress.start("Publishing", events));
    }

    private PhaseMeasurement send(PhaseSpec phase, LoadPhase time, Progress shown) {
        return context.session
                .sendAndAwait(phase, settings.load().eventsPerSecond(), time, shown)
                .measurement();
    }

    private @Nullable CompilationTime compilation() {
        try {
            return context.compilation.now();
        } catch (IOException e) {
            out.println("The compilation time is unknown: " + e.getMessage());
            return null;
        }
    }

    private Outcome outcome(PhaseMeasurement warmup, PhaseMeasurement measured, boolean consumed) {
        StopSignal stop = context.stop;
        boolean timedOut = !consumed && !stop.isRaised();
        return new Outcome(
                warmup,
                measured,
                new Ending(consumed, timedOut, stop.isInterrupted(), stop.reason() == StopSignal.Reason.NO_PROGRESS),
                warmth,
                measuredCompilation);
    }
}
