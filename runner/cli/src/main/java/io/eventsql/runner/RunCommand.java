package io.eventsql.runner;

import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.drivers.Drivers;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.result.RunText;
import io.eventsql.runner.result.RunnerResult;
import io.eventsql.runner.result.Summary;
import io.eventsql.runner.result.SummaryText;
import io.eventsql.runner.sample.SampledProcess;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.Workload;
import io.eventsql.runner.spec.WorkloadKind;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** Measures the runs of a workload on the servers configured in the environment. */
@Command(
        name = "run",
        description = {
            "Measures the runs of a workload on the servers configured in the environment.",
            "Runs them one after the other and writes a folder for each: result.json, report.txt, series.csv, resources.csv, publish.hlog,"
                    + " end_to_end.hlog; for trials, trials.jsonl or trials.csv.",
            "Skips a run that requires other servers and prints the reason. Servers are configured by DB0_HOST,",
            "DB0_PORT (5432), DB0_NAME (eventsql), DB0_USER (eventsql), DB0_PASSWORD, likewise DB1_...; or DB_URLS with",
            "DB_USER and DB_PASSWORD, and described by EVENTSQL_SERVER (default: postgres) and",
            "EVENTSQL_STANDBYS (default: none). Other drivers read additional variables.",
            "Ctrl-C aborts the current phase; measurements up to that point are written.",
            ""
        },
        exitCodeList = {
            "0:passed",
            "1:an event was lost, duplicated, out of order, failed or late, or a run aborted",
            "2:invalid input, or no run matches the servers"
        },
        footer = {
            "  runner run no-op --out results/no-op",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner run fan-out --only 1-consumer --out results/fan-out",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner run limits --only cost --set limits.rounds=5 --out results/limits",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner run stress --set phases.2.seconds=20"
                    + " --process database-0=1234 --out results/stress"
        })
final class RunCommand extends RunnerCommand {
    @Mixin
    private final WorkloadOptions options = new WorkloadOptions();

    @Option(
            names = "--out",
            paramLabel = "DIR",
            required = true,
            description = "output folder; each run writes a subfolder of its name")
    private Path out = Path.of("");

    @Mixin
    private final ProvenanceOptions provenance = new ProvenanceOptions();

    @Mixin
    private final ProcessesOption processes = new ProcessesOption();

    RunCommand(Map<String, String> environment) {
        super(environment);
    }

    @Override
    public Integer call() throws IOException {
        CommandLine commandLine = commandLine();
        Workload workload = options.read(commandLine);
        AvailableServers servers = servers();
        List<SampledProcess> sampled = processes.read(commandLine);
        List<RunSpec> runs = servers.select(workload, commandLine.getErr());
        if (runs.isEmpty()) {
            return Runner.INVALID_INPUT;
        }
        Map<String, DriverProvider> drivers = drivers(runs, commandLine);
        StopSignal stop = new StopSignal();
        MeasuredRun.RunContext context = new MeasuredRun.RunContext(
                workload,
                environment(),
                servers.databases(),
                sampled,
                provenance.command(),
                provenance.gitCommit(),
                RunResult.Machine.ofThis(Runtime.getRuntime().availableProcessors(), null),
                stop,
                commandLine.getOut()::println);
        int exitCode = Runner.OK;
        try (ShutdownHook hook = ShutdownHook.register(stop)) {
            for (RunSpec run : runs) {
                if (stop.isInterrupted()) {
                    break;
                }
                boolean passed = run.kind() == WorkloadKind.PUBLISH
                        ? publish(run, context)
                        : measure(
                                run,
                                Objects.requireNonNull(drivers.get(run.system().driver())),
                                context,
                                hook);
                exitCode = passed ? exitCode : Runner.FAILED;
            }
            hook.release();
        }
        return exitCode;
    }

    private static Map<String, DriverProvider> drivers(List<RunSpec> runs, CommandLine commandLine) {
        Map<String, DriverProvider> drivers = new HashMap<>();
        for (RunSpec run : runs) {
            String name = run.system().driver();
            drivers.put(
                    name,
                    Drivers.find(name)
                            .orElseThrow(() -> new ParameterException(
                                    commandLine,
                                    "Unknown driver " + name + "; known drivers: " + String.join(", ", Drivers.names())
                                            + ". Add others to the class path")));
        }
        return drivers;
    }

    private boolean measure(RunSpec run, DriverProvider driver, MeasuredRun.RunContext context, ShutdownHook hook) {
        Path folder = out.resolve(run.name());
        try {
            Consumer<RunResult> shown = written -> show(RunText.of(written), folder, context, hook);
            MeasuredRun measured = switch (run.kind()) {
                case LIMITS -> new LimitsRun(run, driver, context);
                case BLAST, SWEEP -> new TrialsRun(run, driver, context);
                case PHASES, SEARCH -> new WorkloadRun(run, driver, context);
                case PUBLISH, QUERIES -> throw new IllegalArgumentException(run.name());
            };
            return measured.run(folder, shown).verdict().passed();
        } catch (Exception e) {
            System.err.println("Run " + run.name() + " aborted: " + e);
            e.printStackTrace();
            return false;
        }
    }

    private static void show(List<String> report, Path folder, MeasuredRun.RunContext context, ShutdownHook hook) {
        context.out().accept("");
        report.forEach(context.out());
        context.out().accept("");
        System.err.println("Result: " + folder);
        if (context.stop().isInterrupted()) {
            hook.release();
        }
    }

    /** Runs the main job with this process as the only runner. */
    private boolean publish(RunSpec run, MeasuredRun.RunContext context) {
        Path folder = out.resolve(run.name());
        Map<String, String> all = new HashMap<>(environment());
        all.putAll(run.variables());
        try {
            MainJob.Setup setup = PublishCommand.setup(all);
            RunnerResult published = new MainJob(setup, context.stop())
                    .publish(ended -> JsonFiles.write(folder.resolve("runner-0.json"), ended));
            RunResult.Machine machine = context.machine();
            Summary summary = MainJob.summarize(
                    List.of(published),
                    setup.apps(),
                    new Summary.Provenance(
                            machine.cpus(),
                            0,
                            context.gitCommit(),
                            context.command(),
                            context.workload().name()),
                    folder.resolve("result.json"));
            SummaryText.of(summary).forEach(context.out());
            return summary.verdict().passed();
        } catch (Exception e) {
            System.err.println("Run " + run.name() + " aborted: " + e);
            e.printStackTrace();
            return false;
        }
    }
}
