package io.eventsql.runner;

import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.RunnerResult;
import java.io.IOException;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** Publishes the events of a run and writes the measurements. */
@Command(
        name = "publish",
        description = {
            "Publishes events, waits until they are consumed, and reports both.",
            "With several apps, starts as soon as they share the consumer's partitions.",
            "Each option can also be set in the environment: --events-rate as EVENTS_RATE, and so on.",
            "Configure the databases in the environment: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql), DB0_USER (eventsql),"
                    + " DB0_PASSWORD, likewise DB1_..., DB2_...; or DB_URLS with DB_USER and DB_PASSWORD.",
            ""
        },
        exitCodeList = {
            "0:all events published and consumed",
            "1:an event failed, the run timed out or aborted",
            "2:invalid input"
        },
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner publish --events-rate 1000 --events-to-publish 60000",
            "  DB_URLS=jdbc:postgresql://a/eventsql,jdbc:postgresql://b/eventsql DB_PASSWORD=... runner --keyed",
            "  EVENTS_RATE=0 CALLERS=4 EVENTS_BATCH_SIZE=100 DB0_HOST=localhost DB0_PASSWORD=... runner"
        })
final class PublishCommand extends RunnerCommand {
    @Mixin
    private PublishOptions options = new PublishOptions();

    @Mixin
    private final AppOptions appOptions = new AppOptions();

    @Option(
            names = "--db-urls",
            paramLabel = "URLS",
            description = "comma-separated JDBC URLs of the databases, instead of DB0_HOST and so on")
    private @Nullable String dbUrls;

    @Option(names = "--db-user", paramLabel = "NAME", description = "database user for --db-urls (default: eventsql)")
    private @Nullable String dbUser;

    @Mixin
    private final ProcessesOption processes = new ProcessesOption();

    @Option(
            names = "--metrics-port",
            paramLabel = "PORT",
            description = {
                "serves counters for Prometheus at /metrics on this port while it runs, on all addresses",
                "(environment: METRICS_PORT; default: off)"
            })
    private @Nullable Integer metricsPort;

    PublishCommand(Map<String, String> environment) {
        super(environment);
    }

    @Override
    public Integer call() throws IOException, SQLException {
        MainJob.Setup setup = setup(commandLine());
        StopSignal stop = new StopSignal();
        try (ShutdownHook hook = ShutdownHook.register(stop)) {
            RunnerResult result = new MainJob(setup, stop).publish(ended -> {
                JsonFiles.write(options.resultFile(), ended);
                System.err.println("Result: " + options.resultFile());
                hook.release();
            });
            return result.ending().succeeded() && result.failedEvents() == 0 ? Runner.OK : Runner.FAILED;
        }
    }

    /** Returns the setup of which each option is set by its environment variable. */
    static MainJob.Setup setup(Map<String, String> environment) {
        PublishCommand command = new PublishCommand(environment);
        CommandLine commandLine =
                new CommandLine(command).setDefaultValueProvider(new EnvironmentDefaults(environment));
        commandLine.parseArgs();
        return command.setup(commandLine);
    }

    /** @throws ParameterException if an option or a variable is invalid; names it and the limit */
    private MainJob.Setup setup(CommandLine commandLine) {
        return new MainJob.Setup(
                options.settings(commandLine),
                databases(mergedEnvironment()),
                appOptions,
                processes.read(commandLine),
                metricsPort);
    }

    private Map<String, String> mergedEnvironment() {
        Map<String, String> all = new HashMap<>(environment());
        if (dbUrls != null) {
            all.put("DB_URLS", dbUrls);
        }
        if (dbUser != null) {
            all.put("DB_USER", dbUser);
        }
        return all;
    }
}
