package io.eventsql.runner;

import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.drivers.Drivers;
import io.eventsql.runner.plain.CopyProgram;
import io.eventsql.runner.plain.MachineLimits;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.spec.PhaseSpec;
import io.eventsql.runner.spec.RunSpec;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;

/** Measures plain client programs and the machine's limits under the load of a workload's phases. */
@Command(
        name = "plain",
        description = {
            "Measures what plain client programs reach under the load of a workload's measured phases with callers,",
            "with the same settings on the same server, and the machine's own limits: flushes, loopback round trips",
            "and, with PostgreSQL, a binary COPY. Writes plain.json to the folder of each run; if that already has a",
            "result.json, prints the run's rate, the program's and the ratio. Servers as in runner run --help.",
            ""
        },
        exitCodeList = {"0:measured", "1:a program failed", "2:invalid input, or no run matches the servers"},
        footerHeading = "%nExample:%n",
        footer = "  KAFKA_BOOTSTRAP_SERVERS=localhost:9092 EVENTSQL_SERVER=kafka"
                + " runner plain compare --only kafka-tuned --out results/compare")
final class PlainCommand extends RunnerCommand {
    private static final double COPY_SECONDS = 1.5;
    private static final int SECONDS_MAX = 3_600;
    private static final double FSYNC_SECONDS = 1;

    /** The content of {@code plain.json}. */
    private record PlainResult(List<ProgramRates> programs, MachineLimits limits) {}

    /** The rates of the plain program under the load of a phase, in events/s. */
    private record ProgramRates(String phase, double publishRate, double consumeRate) {}

    @Mixin
    private final WorkloadOptions options = new WorkloadOptions();

    @Option(
            names = "--out",
            paramLabel = "DIR",
            required = true,
            description = "output folder, with a subfolder for each run; on the disk to measure")
    private Path out = Path.of("");

    @Option(
            names = "--seconds",
            paramLabel = "N",
            defaultValue = "3",
            description = "duration of each program, after as long a warm-up (default: ${DEFAULT-VALUE})")
    private int seconds = 1;

    PlainCommand(Map<String, String> environment) {
        super(environment);
    }

    @Override
    public Integer call() throws Exception {
        var commandLine = commandLine();
        new OptionValidator(commandLine).requireRange("--seconds", seconds, 1, SECONDS_MAX);
        AvailableServers servers = servers();
        int exitCode = Runner.INVALID_INPUT;
        for (RunSpec run : servers.select(options.read(commandLine), commandLine.getErr())) {
            Path folder = out.resolve(run.name());
            Files.createDirectories(folder);
            List<ProgramRates> programs = measurePrograms(run);
            MachineLimits limits = MachineLimits.measure(folder, FSYNC_SECONDS, copyRowsPerSecond(run));
            JsonFiles.write(folder.resolve("plain.json"), new PlainResult(programs, limits));
            print(commandLine.getOut(), run, programs, folder);
            exitCode = Runner.OK;
        }
        return exitCode;
    }

    private List<ProgramRates> measurePrograms(RunSpec run) throws Exception {
        List<ProgramRates> measured = new ArrayList<>();
        Optional<PlainProgram> program =
                Drivers.find(run.system().driver()).flatMap(provider -> provider.plainProgram());
        if (program.isEmpty()) {
            return measured;
        }
        DriverSettings settings = new DriverSettings(run.system().driverOptions(), environment());
        for (PhaseSpec phase : run.phases()) {
            Integer callers = phase.callers();
            if (callers == null || !phase.measured()) {
                continue;
            }
            PlainProgram.Load load = new PlainProgram.Load(
                    callers, phase.async(), phase.eventsPerCall(), run.events().bytes(), seconds);
            program.get().run(settings, load);
            PlainProgram.Rates rates = program.get().run(settings, load);
            measured.add(new ProgramRates(phase.name(), rates.publishRate(), rates.consumeRate()));
        }
        return measured;
    }

    private @Nullable Double copyRowsPerSecond(RunSpec run) throws Exception {
        if (!run.environment().server().equals("postgres")) {
            return null;
        }
        DriverSettings settings = new DriverSettings(Map.of(), environment());
        CopyProgram copy = new CopyProgram();
        copy.run(settings, CopyProgram.load(1, COPY_SECONDS));
        return copy.run(settings, CopyProgram.load(1, COPY_SECONDS)).publishRate();
    }

    private static void print(PrintWriter out, RunSpec run, List<ProgramRates> programs, Path folder)
            throws IOException {
        Path result = folder.resolve("result.json");
        JsonNode phases =
                Files.isRegularFile(result) ? JsonFiles.readTree(result).path("phases") : null;
        for (ProgramRates program : programs) {
            String line = String.format(
                    Locale.ROOT,
                    "%s, %s: plain program %,.0f/s published, %,.0f/s consumed",
                    run.name(),
                    program.phase(),
                    program.publishRate(),
                    program.consumeRate());
            if (phases != null) {
                for (JsonNode phase : phases) {
                    if (phase.path("name").asString().equals(program.phase())) {
                        double published = phase.path("publish_rate").asDouble();
                        double consumed = phase.path("consume_rate").asDouble();
                        line += String.format(
                                Locale.ROOT,
                                "; run %,.0f/s (%.2f) and %,.0f/s (%.2f)",
                                published,
                                published / program.publishRate(),
                                consumed,
                                consumed / program.consumeRate());
                    }
                }
            }
            out.println(line);
        }
    }
}
