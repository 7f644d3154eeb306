package io.eventsql.spring.boot;

import io.eventsql.EventSqlException;
import io.eventsql.ShardIdentityException;
import io.eventsql.UnknownStreamException;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Has databases with which EventSQL cannot start shown by their messages, the causes beneath. */
final class EventSqlFailureAnalyzer extends AbstractFailureAnalyzer<EventSqlException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, EventSqlException cause) {
        StringBuilder description = new StringBuilder();
        for (@Nullable Throwable reason = cause; reason != null; reason = reason.getCause()) {
            description.append(reason.getMessage()).append('\n');
        }
        return new FailureAnalysis(description.toString().strip(), action(cause), cause);
    }

    private static String action(EventSqlException cause) {
        return switch (cause) {
            case UnknownStreamException unknown ->
                "Declare it: eventsql.streams.<name>.partitions=10, or a StreamSpec bean. Or have what is missing created:"
                        + " eventsql.create-missing-streams=true.";
            case ShardIdentityException wrong ->
                "Check that eventsql.shards names all databases of the cluster, each once, and eventsql.schema their"
                        + " schema.";
            default -> "Check the databases, their addresses and passwords: eventsql.shards or spring.datasource.";
        };
    }
}
