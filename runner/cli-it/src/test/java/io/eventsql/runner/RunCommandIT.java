package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.RunResult.PhaseMetrics;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.testing.ResultSchema;
import io.eventsql.runner.testing.TestDatabase;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Runs workloads on a real database, and in a process that receives SIGTERM. */
@Timeout(120)
class RunCommandIT {
    @AutoClose
    private static final TestDatabase DATABASE = TestDatabase.create();

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @TempDir
    private Path folder;

    @Test
    void run_phasesOnARealDatabase_writesACompleteResult() throws IOException {
        Path workload = workload("""
                description: Two streams, two consumers and a replayer of each, and an overload.
                kind: phases
                events: {bytes: 180, keys: 20}
                streams: 2
                partitions: 3
                consumers: 2
                replayers: 1
                phases:
                  - {name: warm-up, measured: false, rate: 200, seconds: 1}
                  - {name: sustainable, callers: 4, seconds: 1}
                  - {name: overload, rate: 3x, in_flight: 50, seconds: 2}
                  - {name: recovery, rate: 0.1x, seconds: 1}
                """);

        int exitCode = execute("run", workload.toString(), "--out", folder.toString(), "--command", "this test");

        assertThat(exitCode).as(out.toString() + err).isZero();
        RunResult result = RunFolder.read(folder.resolve("small"));
        assertThat(result.verdict().problems()).isEmpty();
        assertThat(result.identity().command()).isEqualTo("this test");
        assertThat(result.settings().events().bytes()).isEqualTo(180);
        assertThat(result.driver().version()).startsWith("PostgreSQL 18");
        assertThat(result.databases()).hasSize(1).allSatisfy(database -> {
            assertThat(database.fsync()).isEqualTo("on");
            assertThat(Math.abs(database.clockOffsetMs())).isLessThan(1_000);
        });
        assertThat(result.phases())
                .extracting(PhaseMetrics::name)
                .containsExactly("warm-up", "sustainable", "overload", "recovery");
        long published = result.phases().stream()
                .mapToLong(PhaseMetrics::eventsPublished)
                .sum();
        assertThat(result.consumers()).hasSize(4).allMatch(seen -> seen.eventsLost() == 0);
        assertThat(result.consumers().stream()
                        .mapToLong(ConsumerCounts::eventsSeen)
                        .sum())
                .isEqualTo(2 * published);
        assertThat(result.replayers()).hasSize(2).allMatch(replayer -> replayer.events() > 0);
        PhaseMetrics overload = result.phases().get(2);
        assertThat(overload.eventsSent() + overload.eventsMissed())
                .isBetween(Math.round(1.98 * overload.offeredRate()), Math.round(2.02 * overload.offeredRate()));
        assertThat(result.stress()).isNotNull();
        assertThat(result.stress().residentMb()).containsKey("runner");
        assertThat(result.series().phase()).contains("sustainable", "overload", "recovery");
        double inSeconds = result.series().publishRate().stream()
                .mapToDouble(Double::doubleValue)
                .sum();
        assertThat(Math.round(inSeconds)).isEqualTo(published - 200);
        assertThat(result.resources().columns())
                .containsKeys(
                        "runner.cpu_cores",
                        "runner.rss_mb",
                        "runner.heap_mb",
                        "runner.sampler_share",
                        "shard0.wal_mb_per_second",
                        "shard0.database_mb",
                        "shard0.dead_tuples",
                        "shard0.autovacuums",
                        "shard0.checkpoints",
                        "shard0.commits_per_second");
        assertThat(result.resources().columns().get("shard0.commits_per_second"))
                .anyMatch(commits -> commits != null && commits > 0);
        assertThat(Files.readAllLines(folder.resolve("small/series.csv")))
                .hasSize(1 + result.series().t().size());
        assertThat(Files.readString(folder.resolve("small/publish.hlog"))).contains("Tag=overload,");

        out.getBuffer().setLength(0);
        ResultSchema.requireValid(folder.resolve("small/result.json"));
        assertThat(execute("report", folder.resolve("small").toString())).isZero();
        assertThat(out.toString()).isEqualTo(Files.readString(folder.resolve("small/report.txt")));
        out.getBuffer().setLength(0);
        assertThat(execute("compare", folder.toString())).isZero();
        assertThat(out.toString()).contains("| small, overload | eventsql | committed by PostgreSQL");
    }

    @Test
    void run_holdStillInSeconds_holdsASnapshotInItsPhaseOnly() throws Exception {
        List<Long> ages = new CopyOnWriteArrayList<>();
        AtomicBoolean ended = new AtomicBoolean();
        Thread watcher = Thread.ofPlatform().start(() -> watchSnapshots(ages, ended));

        int exitCode = execute(
                "run",
                "../workloads/hold-still.yaml",
                "--only=eventsql",
                "--set=schedule_factor=0.002",
                "--set=phases.0.seconds=1",
                "--out=" + folder);
        ended.set(true);
        watcher.join();

        assertThat(exitCode).as(out.toString() + err).isZero();
        Path written = folder.resolve("eventsql/result.json");
        ResultSchema.requireValid(written);
        assertThat(JsonFiles.read(written, RunResult.class).settings().phases())
                .extracting(PhaseSpec::name, PhaseSpec::seconds, PhaseSpec::fullSeconds, PhaseSpec::holdsSnapshot)
                .containsExactly(
                        tuple("warm-up", 1, null, false),
                        tuple("clean", 1, 600, false),
                        tuple("held", 4, 1_800, true),
                        tuple("recovery", 1, 600, false));
        assertThat(ages).as("during its phase, in transactions").anyMatch(age -> age > 50);
        assertThat(ages.stream().takeWhile(age -> age <= 50).filter(age -> age < 0)) // others are of short transactions
                .as("before its phase, in twentieths of a second")
                .hasSizeGreaterThan(10);
        assertThat(ages.getLast()).as("after its phase").isNegative();
    }

    /** Records the age of the oldest idle snapshot in transactions, -1 for none, twenty times per second. */
    private static void watchSnapshots(List<Long> ages, AtomicBoolean ended) {
        try (Connection connection = DATABASE.dataSource().getConnection();
                PreparedStatement statement = connection.prepareStatement(
                        "SELECT coalesce(max(age(backend_xmin)), -1) FROM (SELECT pg_sleep(0.05)) AS pause"
                                + " LEFT JOIN pg_stat_activity ON state = 'idle in transaction'")) {
            while (!ended.get()) {
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    ages.add(row.getLong(1));
                }
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void run_search_findsTheHighestRate() throws IOException {
        Path workload = workload("""
                description: The highest rate below a limit that everything keeps.
                kind: search
                search: {limit_ms: 60000, from_rate: 50, to_rate: 100}
                phases:
                  - {name: warm-up, measured: false, rate: 50, seconds: 1}
                  - {name: trial, rate: 50, seconds: 1}
                """);

        assertThat(execute("run", workload.toString(), "--out", folder.toString()))
                .as("%s%s", out, err)
                .isZero();

        RunResult result = RunFolder.read(folder.resolve("small"));
        assertThat(result.search()).isNotNull();
        List<RunResult.SearchResult.Trial> trials = result.search().trials();
        assertThat(trials.getFirst().rate()).isEqualTo(50);
        assertThat(trials).allMatch(trial -> trial.latencyMs() > 0);
        assertThat(trials.size() > 1).isEqualTo(trials.getFirst().held());
        // A single slow commit is enough for a trial of a second not to hold.
        assertThat(result.search().bestRate())
                .isEqualTo(trials.stream()
                        .filter(RunResult.SearchResult.Trial::held)
                        .mapToLong(RunResult.SearchResult.Trial::rate)
                        .max()
                        .orElse(0));
    }

    @Test
    void run_sweep_writesTrialsResourcesAndCopyLimit() throws IOException {
        Path workload = workload("""
                description: A few events, some times.
                kind: sweep
                sweep: {event_counts: [1, 2000], trials: 5, buffer_bytes: 1024, waiting: true}
                """);

        assertThat(execute("run", workload.toString(), "--out", folder.toString()))
                .as("%s%s", out, err)
                .isZero();

        ResultSchema.requireValid(folder.resolve("small/result.json"));
        RunResult result = JsonFiles.read(folder.resolve("small/result.json"), RunResult.class);
        assertThat(result.trials().size()).isEqualTo(10);
        RunResult.CopyLimit copy = result.copyLimit();
        assertThat(copy).isNotNull();
        assertThat(copy.events()).isEqualTo(2_000);
        assertThat(copy.trialsMs()).hasSize(5).allMatch(ms -> ms > 0).contains(copy.durationMs());
        assertThat(copy.trialsMs().stream().filter(ms -> ms <= copy.durationMs()))
                .hasSize(3);
        assertThat(result.resources().columns().get("shard0.commits_per_second"))
                .anyMatch(commits -> commits != null && commits > 0);
        assertThat(Files.readAllLines(folder.resolve("small/resources.csv")))
                .hasSize(1 + result.resources().t().size());
        assertThat(Files.readAllLines(folder.resolve("small/trials.csv"))).hasSize(11);
    }

    @Test
    void run_otherServers_isSkippedWithReason() throws IOException {
        Path workload = workload("""
                description: Needs what is not there.
                kind: phases
                phases: [{name: steady, rate: 1, seconds: 1}]
                runs:
                  - {name: kafka, environment: {server: kafka}}
                  - {name: three, environment: {databases: 3}}
                  - {name: synchronous, environment: {standbys: synchronous}}
                """);

        assertThat(execute("run", workload.toString(), "--out", folder.toString()))
                .isEqualTo(Runner.INVALID_INPUT);

        assertThat(err.toString())
                .contains("Skipping run kafka: requires server kafka, but EVENTSQL_SERVER is postgres")
                .contains("Skipping run three: requires 3 databases, but 1 are configured")
                .contains("Skipping run synchronous: requires standbys synchronous, but EVENTSQL_STANDBYS is none");
    }

    @Test
    void run_sigterm_writesMeasurementsSoFar() throws Exception {
        Path workload = workload("""
                description: Would take minutes.
                kind: phases
                environment: {server: none, databases: 0}
                driver: no-op
                consumers: 0
                phases:
                  - {name: steady, rate: 1000, seconds: 300}
                  - {name: more, rate: 1000, seconds: 300}
                """);
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                Runner.class.getName()));
        Stream.of("run", workload.toString(), "--out", folder.toString()).forEach(command::add);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        try (BufferedReader output =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            // The first progress line: the load is running.
            String line = output.readLine();
            while (line != null && !line.startsWith("steady: ")) {
                line = output.readLine();
            }
            assertThat(line).isNotNull();

            // Not SIGINT, which Java ignores if the parent process ignores it, as for background jobs.
            process.toHandle().destroy();

            while (line != null) {
                line = output.readLine();
            }
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(process.exitValue()).isEqualTo(143);
        RunResult result = RunFolder.read(folder.resolve("small"));
        assertThat(result.verdict().interrupted()).isTrue();
        assertThat(result.verdict().passed()).isFalse();
        assertThat(result.phases()).hasSize(1);
        PhaseMetrics steady = result.phases().getFirst();
        assertThat(steady.eventsPublished()).isPositive().isEqualTo(steady.eventsSent());
        assertThat(steady.seconds()).isBetween(1.0, 299.0);
        assertThat(result.series().t()).isNotEmpty();
        assertThat(Files.readString(folder.resolve("small/report.txt"))).contains("INTERRUPTED");
    }

    private Path workload(String text) throws IOException {
        return Files.writeString(folder.resolve("small.yaml"), text);
    }

    private int execute(String... arguments) {
        CommandLine commandLine = Runner.commandLine(DATABASE.environment());
        commandLine.setOut(new PrintWriter(out, true));
        commandLine.setErr(new PrintWriter(err, true));
        return commandLine.execute(arguments);
    }
}
