package io.eventsql.runner;

import io.eventsql.ClearPreview;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.UnknownStreamException;
import io.eventsql.runner.database.Databases;
import java.io.PrintWriter;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** Deletes all events of a stream. Without a confirmation token, only previews the deletion. */
@Command(
        name = "clear",
        description = {
            "Permanently deletes all events of a stream.",
            "Without --confirm, shows what would be deleted and the confirmation token to pass. The stream itself remains.",
            "Stop its consumers first; publishers may continue.",
            "Configure the databases in the environment: DB0_HOST, DB0_PORT (5432), DB0_NAME (eventsql),",
            "DB0_USER (eventsql), DB0_PASSWORD, DB1_HOST ...; or DB_URLS with DB_USER and DB_PASSWORD.",
            ""
        },
        exitCodeList = {
            "0:previewed or cleared",
            "1:not cleared or only partly cleared; see the message",
            "2:invalid input, such as an unknown stream or an outdated token"
        },
        footer = {
            "  DB0_HOST=localhost DB0_PASSWORD=... runner clear orders",
            "  DB0_HOST=localhost DB0_PASSWORD=... runner clear orders --confirm 3f2a9c0d11e84b57"
        })
final class ClearCommand extends RunnerCommand {
    @Parameters(paramLabel = "STREAM", description = "name of the stream")
    private String stream = "";

    @Option(names = "--confirm", paramLabel = "TOKEN", description = "confirmation token shown by a call without it")
    private @Nullable String confirmation;

    ClearCommand(Map<String, String> environment) {
        super(environment);
    }

    @Override
    public Integer call() {
        PrintWriter out = commandLine().getOut();
        try (Databases databases = Databases.open(databases());
                EventSql eventSql = EventSql.builder(databases.dataSources()).build()) {
            String confirmed = confirmation;
            if (confirmed == null) {
                printPreview(eventSql.previewClear(stream), out);
            } else {
                out.printf("Deleted %,d events of stream %s%n", eventSql.clear(stream, confirmed), stream);
            }
            return Runner.OK;
        } catch (InvalidInputException | UnknownStreamException e) {
            throw new ParameterException(commandLine(), e.getMessage(), e);
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
