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

/** Deletes all events of a stream; the first call only tells what that would be. */
@Command(
        name = "clear",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Deletes all events of a stream, for good. Without --confirm it tells what would be deleted, and the",
            "confirmation to call it with. The stream stays; publishers need not stop, consumers must.",
            "The databases are given in the environment: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql),",
            "DB0_USER (eventsql), DB0_PASSWORD, DB1_HOST ...; or DB_URLS with DB_USER and DB_PASSWORD.",
            ""
        },
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:told, or cleared",
            "1:it could not be cleared, or not all of it: the message says why",
            "2:wrong input: no such stream, or not its confirmation"
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

    @Parameters(paramLabel = "STREAM", description = "the stream")
    private String stream = "";

    @Option(names = "--confirm", paramLabel = "TOKEN", description = "what the call without it has told")
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
