package io.eventsql.runner;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.plain.CopyProgram;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.SeriesFiles;
import io.eventsql.runner.result.TrialFiles;
import io.eventsql.runner.sample.ResourceSampler;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.trials.Trials;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** A run of kind {@code blast} or {@code sweep}. */
final class TrialsRun extends MeasuredRun {
    /** Excludes the first COPY, which pays for the new connection and tables. */
    private static final int COPY_TRIALS = 5;

    private final String id = BenchmarkEvent.randomRun();

    TrialsRun(RunSpec spec, DriverProvider provider, RunContext context) {
        super(spec, provider, context);
    }

    @Override
    RunResult run(Path folder, Consumer<RunResult> written) throws Exception {
        long startNanos = clock.nanos();
        try (Driver driver = openDriver();
                ResourceSampler sampler = startSampler(() -> startNanos)) {
            Trials trials = new Trials(new Trials.TrialContext(
                    driver, id, spec.streams().partitions(), clock, context.stop(), problems::add, context.out()));
            RunSpec.BlastSpec blast = spec.blast();
            JsonNode measured;
            RunResult.CopyLimit copyLimit = null;
            if (blast != null) {
                measured = JsonFiles.toTree(trials.blast(blast, spec.events().bytes()));
                TrialFiles.writeLines(folder.resolve("trials.jsonl"), measured);
            } else {
                RunSpec.SweepSpec sweep = Objects.requireNonNull(spec.sweep());
                measured = JsonFiles.toTree(trials.sweep(sweep, spec.events().bytes(), spec.environment()));
                TrialFiles.writeCsv(folder.resolve("trials.csv"), measured);
                copyLimit = context.stop().isRaised() ? null : copyLimit(sweep);
            }
            ResourceSeries resources = sampler.table((int) ((clock.nanos() - startNanos) / 1_000_000_000));
            SeriesFiles.writeResources(folder, resources);
            RunResult result = RunResult.ofTrials(
                    identity(id),
                    verdict(problems.all()),
                    spec,
                    driverInfo(driver.version()),
                    context.machine(),
                    readDatabases(),
                    measured,
                    copyLimit,
                    resources);
            RunFolder.write(folder, result);
            written.accept(result);
            return result;
        }
    }

    /** Measures a plain COPY of the largest number of events; {@code null} if the run does not use our PostgreSQL. */
    private RunResult.@Nullable CopyLimit copyLimit(RunSpec.SweepSpec sweep) throws SQLException {
        if (!spec.environment().server().equals("postgres")) {
            return null;
        }
        DriverSettings settings = new DriverSettings(Map.of(), context.environment());
        int events = Collections.max(sweep.eventCounts());
        List<Double> durationsMs = new ArrayList<>();
        for (int trial = 0; trial <= COPY_TRIALS && !context.stop().isRaised(); trial++) {
            double durationMs = CopyProgram.durationMs(settings, events);
            context.out().accept(String.format(Locale.ROOT, "COPY, %,d events: %,.1f ms", events, durationMs));
            if (trial > 0) {
                durationsMs.add(durationMs);
            }
        }
        return durationsMs.isEmpty() ? null : RunResult.CopyLimit.ofTrials(events, durationsMs);
    }
}
