package io.eventsql.runner;

import io.eventsql.EventSql;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.limits.CopyTime;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.TrialsResult;
import io.eventsql.runner.result.TrialsText;
import io.eventsql.runner.spec.BlastSpec;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.SweepSpec;
import io.eventsql.runner.trials.BlastSettings;
import io.eventsql.runner.trials.BlastTrial;
import io.eventsql.runner.trials.Measured;
import io.eventsql.runner.trials.SweepSettings;
import io.eventsql.runner.trials.SweepTrial;
import io.eventsql.runner.trials.TrialFiles;
import io.eventsql.runner.trials.Trials;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Measures one run of the kinds {@code blast} and {@code sweep}, and writes its folder. */
final class TrialsRun {
    private final RunSpec spec;
    private final DriverProvider provider;
    private final WorkloadRun.Surroundings surroundings;
    private final LoadClock clock = LoadClock.SYSTEM;
    private final String id = BenchmarkEvent.randomRun();

    TrialsRun(RunSpec spec, DriverProvider provider, WorkloadRun.Surroundings surroundings) {
        this.spec = spec;
        this.provider = provider;
        this.surroundings = surroundings;
    }

    /**
     * Measures it.
     *
     * @param folder takes the result
     * @param written told once all is written
     * @throws Exception if it breaks off without a result
     */
    TrialsResult run(Path folder, Consumer<TrialsResult> written) throws Exception {
        Instant startedAt = Instant.now();
        try (Driver driver =
                provider.open(new DriverSettings(spec.system().driverOptions(), surroundings.environment()))) {
            Trials trials = new Trials(new Trials.Parts(
                    driver, id, spec.streams().partitions(), clock, surroundings.stop(), surroundings.out()));
            BlastSpec blast = spec.blast();
            TrialsResult result;
            if (blast != null) {
                Measured<BlastTrial> measured = trials.blast(settings(blast));
                TrialFiles.writeLines(folder.resolve("trials.jsonl"), measured.trials());
                result = result(driver, startedAt, measured, null);
            } else {
                SweepSpec sweep = Objects.requireNonNull(spec.sweep());
                Measured<SweepTrial> measured = trials.sweep(settings(sweep));
                TrialFiles.writeCsv(folder.resolve("trials.csv"), measured.trials());
                result = result(driver, startedAt, measured, measured.interrupted() ? null : copyLimit(sweep));
            }
            JsonFiles.write(folder.resolve("result.json"), result);
            JsonFiles.write(folder.resolve("report.txt"), String.join("\n", TrialsText.of(result)) + "\n");
            written.accept(result);
            return result;
        }
    }

    private BlastSettings settings(BlastSpec blast) {
        return new BlastSettings(
                blast.messages(),
                blast.repeats(),
                blast.capBytes(),
                spec.events().bytes());
    }

    private SweepSettings settings(SweepSpec sweep) {
        int bytes = spec.events().bytes();
        return new SweepSettings(
                sweep.eventCounts(),
                sweep.trials(),
                new SweepSettings.Buffer(sweep.bufferBytes(), sweep.waiting()),
                bytes == 0 ? OptionalInt.empty() : OptionalInt.of(bytes),
                new SweepSettings.Cluster(
                        spec.environment().standbys(), spec.environment().databases()));
    }

    /** What the largest number of events takes without the library; {@code null} where there is no PostgreSQL of ours. */
    private TrialsResult.@Nullable CopyLimit copyLimit(SweepSpec sweep) throws SQLException {
        if (!spec.environment().server().equals("postgres")) {
            return null;
        }
        try (Databases databases = Databases.open(surroundings.databases());
                EventSql eventSql = EventSql.builder(databases.dataSources()).build()) {
            CopyTime copied = CopyTime.measure(eventSql, id, Collections.max(sweep.eventCounts()), clock);
            return new TrialsResult.CopyLimit(copied.events(), copied.durationMs());
        }
    }

    private TrialsResult result(
            Driver driver, Instant startedAt, Measured<?> measured, TrialsResult.@Nullable CopyLimit copyLimit)
            throws SQLException {
        List<String> problems = new ArrayList<>(measured.problems());
        if (measured.interrupted()) {
            problems.add("It was interrupted");
        }
        RunFacts facts = new RunFacts(spec, provider, surroundings);
        return new TrialsResult(
                RunResult.FORMAT,
                facts.identity(id, startedAt),
                new RunResult.Verdict(problems.isEmpty(), measured.interrupted(), problems),
                spec,
                facts.driver(driver),
                RunFacts.machine(),
                facts.databases(clock),
                JsonFiles.treeOf(measured.trials()),
                copyLimit);
    }
}
