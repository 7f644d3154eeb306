package io.eventsql.runner;

import io.eventsql.ClearPreview;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.UnknownStreamException;
import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.database.Databases;
import java.io.PrintWriter;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Deletes all events of a stream. Without a confirmation token, only previews the deletion. */
@Command(
        name = "clear",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Permanently deletes all events of a stream.",
            "Without --confirm, shows what would be deleted and the confirmation token to pass. The stream itself remains.",
            "Stop its consumers first; publishers may continue.",
            "Configure the databases in the environment: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql),",
            "DB0_USER (eventsql), DB0_PASSWORD, DB1_HOST ...; or DB_URLS with DB_USER and DB_PASSWORD.",
            ""
        },
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:previewed or cleared",
            "1:not cleared or only partly cleared; see the message",
            "2:invalid input, such as an unknown stream or an outdated token"
        },
        footerHeading = "%nExamples:%n",
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner clear orders",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner clear orders --confirm 3f2a9c0d11e84b57"
        })
final class ClearCommand implements Callable<Integer> {
    private final Map<String, String> environment;

    @Spec
    private @Nullable CommandSpec spec;

    @Parameters(paramLabel = "STREAM", description = "name of the stream")
    private String stream = "";

    @Option(names = "--confirm", paramLabel = "TOKEN", description = "confirmation token shown by a call without it")
    private @Nullable String confirmation;

    ClearCommand(Map<String, String> environment) {
        this.environment = Map.copyOf(environment);
    }

    @Override
    public Integer call() {
        CommandSpec commandSpec = Objects.requireNonNull(spec);
        PrintWriter out = commandSpec.commandLine().getOut();
        try (Databases databases = Databases.open(addresses(commandSpec));
                EventSql eventSql = EventSql.builder(databases.dataSources()).build()) {
            String confirmed = confirmation;
            if (confirmed == null) {
                printPreview(eventSql.previewClear(stream), out);
            } else {
                out.printf("Deleted %,d events of stream %s%n", eventSql.clear(stream, confirmed), stream);
            }
            return Runner.OK;
        } catch (InvalidInputException | UnknownStreamException e) {
            throw new ParameterException(commandSpec.commandLine(), e.getMessage(), e);
        }
    }

    private List<DatabaseAddress> addresses(CommandSpec commandSpec) {
        try {
            return DatabaseVariables.read(new Variables(environment::get));
        } catch (IllegalArgumentException e) {
            throw new ParameterException(commandSpec.commandLine(), e.getMessage(), e);
        }
    }

    private static void printPreview(ClearPreview preview, PrintWriter out) {
        out.printf("Stream %s holds %,d events:%n", preview.stream(), preview.events());
        preview.shards()
                .forEach(content -> out.printf(
                        "  shard %d: %,d events in %,d segments%n",
                        content.shard(), content.events(), content.segments()));
        out.printf("To delete them: runner clear %s --confirm %s%n", preview.stream(), preview.confirmation());
    }
}
