package io.eventsql.runner;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.drivers.EventSqlDriverProvider;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.result.RunFolder;
import io.eventsql.runner.result.RunResult;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.LimitsSpec;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.Workload;
import io.eventsql.runner.spec.WorkloadKind;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** Measures parts of a limits run into one result. The same as a workload: {@code run limits}. */
@Command(
        name = "limits",
        exitCodeList = {
            "0:measured",
            "1:an event failed, was lost, duplicated or out of order, or the run aborted",
            "2:invalid input"
        },
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only append,read --rounds 5",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only append,cost --storage blocks",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only outbox --outbox-seconds 600",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner limits --only large --large-events 100000000 --rounds 5"
        })
final class LimitsCommand extends RunnerCommand {
    private static final String NAME = "limits";
    private static final String DESCRIPTION =
            "How close the library comes to the limits of PostgreSQL and of slow handlers.";

    @Option(
            names = "--only",
            paramLabel = "NAME",
            split = ",",
            description = "run only these parts, comma-separated (default: the first six)")
    private List<String> only = new ArrayList<>();

    @Option(
            names = "--storage",
            paramLabel = "rows|blocks",
            defaultValue = "rows",
            description =
                    "how the streams of append, read, snapshot, compaction, cost, fanout and tail keep their events; COPY writes rows (default: ${DEFAULT-VALUE})")
    private String storage = "";

    @Mixin
    private final ResultOptions resultOptions = new ResultOptions();

    private LimitsCommand(Map<String, String> environment) {
        super(environment);
    }

    /** Creates the command with an option for each number. */
    static CommandLine create(Map<String, String> environment) {
        CommandLine commandLine = new CommandLine(new LimitsCommand(environment));
        CommandSpec spec = commandLine.getCommandSpec();
        for (LimitsNumber number : LimitsNumber.values()) {
            spec.addOption(OptionSpec.builder(number.option())
                    .paramLabel("N")
                    .type(String.class)
                    .defaultValue(number.defaultText())
                    .description(number.description() + " (default: ${DEFAULT-VALUE})")
                    .build());
        }
        spec.usageMessage()
                .description(Stream.of(
                                Stream.of(DESCRIPTION, "All parts run on one database:"),
                                Arrays.stream(LimitsPart.values())
                                        .map(part -> String.format(
                                                Locale.ROOT, "  %-13s %s", part.label(), part.description())),
                                Stream.of(
                                        "cost, fanout and tail need a database on this machine. The role of cost needs pg_checkpoint, that of tail pg_read_all_stats.",
                                        "Each option can also be set in the environment: --read-events as READ_EVENTS, and so on.",
                                        "The database is configured in the environment only: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql), DB0_USER (eventsql),"
                                                + " DB0_PASSWORD; or DB_URLS with DB_USER and DB_PASSWORD. The command leaves new streams limits_... in it.",
                                        ""))
                        .flatMap(lines -> lines)
                        .toArray(String[]::new));
        return commandLine;
    }

    @Override
    public Integer call() throws SQLException {
        CommandLine commandLine = commandLine();
        RunSpec run = RunSpec.ofLimits(NAME, settings(new OptionValidator(commandLine)));
        DatabaseAddress database = database();
        StopSignal stop = new StopSignal();
        WorkloadRun.RunContext context = new WorkloadRun.RunContext(
                new Workload(NAME, WorkloadKind.LIMITS, DESCRIPTION, List.of(run)),
                environment(),
                List.of(database),
                List.of(),
                resultOptions.command(),
                resultOptions.gitCommit(),
                resultOptions.machine(),
                stop,
                commandLine.getOut()::println);
        try (ShutdownHook hook = ShutdownHook.register(stop)) {
            RunResult result = new LimitsRun(run, new EventSqlDriverProvider(), context).run(ended -> {
                List<String> report = RunFolder.writeFile(resultOptions.out(), ended);
                hook.release();
                commandLine.getOut().println();
                report.forEach(commandLine.getOut()::println);
            });
            return result.verdict().passed() ? Runner.OK : Runner.FAILED;
        }
    }

    /** @throws ParameterException if a value is out of range; names the option and the limit */
    private LimitsSpec settings(OptionValidator validator) {
        Map<String, Double> numbers = new LinkedHashMap<>();
        for (LimitsNumber number : LimitsNumber.values()) {
            String value =
                    commandLine().getCommandSpec().findOption(number.option()).getValue();
            try {
                numbers.put(number.field(), number.parse(value));
            } catch (IllegalArgumentException e) {
                throw validator.invalid(number.option(), String.valueOf(e.getMessage()));
            }
        }
        for (String name : only) {
            validator.require(
                    LimitsPart.of(name).isPresent(),
                    "--only",
                    "must be one of " + String.join(", ", LimitsPart.labels()) + ", but is '" + name + "'");
        }
        validator.require(
                List.of("rows", "blocks").contains(storage),
                "--storage",
                "must be rows or blocks, but is '" + storage + "'");
        List<String> parts = only.isEmpty()
                ? LimitsPart.DEFAULTS.stream().map(LimitsPart::label).toList()
                : only.stream().distinct().toList();
        return new LimitsSpec(parts, storage, numbers);
    }
}
