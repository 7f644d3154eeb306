package io.eventsql.runner;

import io.eventsql.ConsumerPosition;
import io.eventsql.runner.consumption.ConsumptionWait;
import io.eventsql.runner.consumption.RebalanceWait;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.report.LoadWatchdog;
import io.eventsql.runner.report.Progress;
import io.eventsql.runner.report.ProgressDisplay;
import io.eventsql.runner.report.RunnerResult.Ending;
import io.eventsql.runner.report.RunnerText;
import io.eventsql.runner.report.SeriesProgress;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.series.SeriesListener;
import io.eventsql.runner.warmup.CompilationTime;
import io.eventsql.runner.warmup.WarmupOutcome;
import io.eventsql.runner.warmup.WarmupWatch;
import io.eventsql.runner.workload.RunSettings;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The steps of a run, in order: wait until the members share the consumer's partitions, warm up, wait until the warm-up
 * is consumed, wait for the other runners, publish the measured events, wait until they are consumed. After a stop
 * signal, the remaining steps are skipped except for a short final wait. Without that wait, events still in transit
 * would count as lost.
 */
final class BenchmarkRun {
    private static final Duration STOPPED_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration RUNNERS_TIMEOUT = Duration.ofSeconds(60);

    /**
     * The collaborators of a run.
     *
     * @param generator sends the load
     * @param positions the consumer's current positions
     * @param lastHandledAtMicros when the app handled the last measured event of this runner, in epoch microseconds;
     *     empty if unknown
     * @param compilation the compilation times of this runner and the apps
     * @param members waits until the members share the consumer's partitions
     * @param barrier synchronizes the start of all runners
     * @param series records the measured phase second by second
     * @param clock the time source
     * @param stop aborts the run
     */
    record RunContext(
            LoadGenerator generator,
            Supplier<List<ConsumerPosition>> positions,
            Supplier<OptionalLong> lastHandledAtMicros,
            CompilationTime.Source compilation,
            RebalanceWait members,
            StartBarrier barrier,
            RunSeries series,
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
            @Nullable WarmupOutcome warmth,
            @Nullable CompilationTime measuredCompilation) {}

    private final RunSettings settings;
    private final RunContext context;
    private final PrintStream out;
    private final ProgressDisplay progress;
    private @Nullable WarmupOutcome warmth;
    private @Nullable CompilationTime measuredCompilation;

    /**
     * @param out receives the human-readable report
     * @param progress displays the progress
     */
    BenchmarkRun(RunSettings settings, RunContext context, PrintStream out, ProgressDisplay progress) {
        this.settings = settings;
        this.context = context;
        this.out = out;
        this.progress = progress;
    }

    /** @throws IOException if the app does not respond, or its members or the other runners are not ready in time */
    Outcome run() throws IOException {
        if (!context.members.await()) {
            return outcome(PhaseMeasurement.empty(), PhaseMeasurement.empty(), false);
        }
        PhaseMeasurement warmup = warmUp();
        if (!awaitConsumption() || context.stop.isRaised()) {
            return outcome(warmup, PhaseMeasurement.empty(), false);
        }
        OptionalLong startAtMicros = context.barrier.await(
                "measured", settings.stream().consumeTimeout().plus(RUNNERS_TIMEOUT), context.stop);
        if (startAtMicros.isEmpty()) {
            return outcome(warmup, PhaseMeasurement.empty(), false);
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
        boolean consumed = awaitConsumption();
        Long firstIntended = measured.firstIntendedAtMicros();
        if (consumed && firstIntended != null) {
            // Positions lag slightly behind. The app knows the exact time.
            long lastHandled = context.lastHandledAtMicros.get().orElseGet(context.clock::epochMicros);
            text.consumed(measured.publishedEvents(), lastHandled - firstIntended)
                    .forEach(out::println);
        }
        return outcome(warmup, measured, consumed);
    }

    private PhaseMeasurement warmUp() {
        RunSettings.Load load = settings.load();
        if (load.warmupSeconds() == 0) {
            return PhaseMeasurement.empty();
        }
        if (load.warmsUpUntilWarm()) {
            return warmUpUntilWarm();
        }
        ClockAnchor anchor = ClockAnchor.now(context.clock);
        long events = load.eventsPerSecond() * load.warmupSeconds();
        LoadPhase phase = load.hasRate()
                ? LoadPhase.ofEvents(true, anchor, anchor.nanos(), events)
                : LoadPhase.ofNanos(
                        true,
                        anchor,
                        anchor.nanos(),
                        Duration.ofSeconds(load.warmupSeconds()).toNanos());
        PhaseMeasurement warmup = send(phase, "Warming up", events);
        warmth = WarmupOutcome.fixed(load.warmupSeconds());
        printWarmup(warmup);
        return warmup;
    }

    /** Warms up until the JVMs of all runners and apps hardly compile, within the bounds of the settings. */
    private PhaseMeasurement warmUpUntilWarm() {
        RunSettings.Load load = settings.load();
        ClockAnchor anchor = ClockAnchor.now(context.clock);
        WarmupWatch.Bounds bounds = new WarmupWatch.Bounds(
                Duration.ofSeconds(load.warmupSeconds()), Duration.ofSeconds(load.warmupMaxSeconds()));
        try (WarmupWatch watch =
                new WarmupWatch(bounds, context.compilation, context.barrier, context.clock, anchor, out::println)) {
            watch.start();
            LoadPhase phase = LoadPhase.until(true, anchor, anchor.nanos(), watch::endNanos);
            PhaseMeasurement warmup = send(phase, "Warming up", 0);
            warmth = watch.outcome();
            printWarmup(warmup);
            return warmup;
        }
    }

    private void printWarmup(PhaseMeasurement warmup) {
        out.println("Warmed up with " + warmup.publishedEvents() + " events");
        RunnerText.errors(warmup.errors()).forEach(out::println);
    }

    private @Nullable CompilationTime compilation() {
        try {
            return context.compilation.now();
        } catch (IOException e) {
            out.println("The compilation time is unknown: " + e.getMessage());
            return null;
        }
    }

    private PhaseMeasurement publishMeasured(long startAtMicros) {
        ClockAnchor anchor = ClockAnchor.now(context.clock);
        long events = settings.load().events();
        LoadPhase phase = LoadPhase.ofEvents(false, anchor, anchor.nanosAt(startAtMicros), events);
        context.series.start(phase.startNanos());
        PhaseMeasurement measured = send(phase, "Publishing", events);
        context.series.addPhase("measured", phase.startNanos(), context.clock.nanos());
        return measured;
    }

    /** @param total the expected number of events; 0 if unknown */
    private PhaseMeasurement send(LoadPhase phase, String what, long total) {
        PublishMeter meter = new PublishMeter();
        long sent;
        Progress shown = new SeriesProgress(progress.start(what, total), context.series, context.clock);
        try (LoadWatchdog watchdog = LoadWatchdog.start(meter, shown, context.clock, context.stop)) {
            sent = context.generator.run(phase, new SeriesListener(meter, context.series));
            watchdog.check();
        }
        return meter.measurement(sent, phase.anchor());
    }

    private boolean awaitConsumption() {
        if (!context.stop.isRaised() && awaitConsumption(settings.stream().consumeTimeout(), context.stop)) {
            return true;
        }
        // This wait is short and cannot be interrupted.
        return context.stop.isRaised() && awaitConsumption(STOPPED_TIMEOUT, new StopSignal());
    }

    private boolean awaitConsumption(Duration timeout, StopSignal stop) {
        return new ConsumptionWait(context.positions, context.clock, timeout, stop, out::println).await();
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
