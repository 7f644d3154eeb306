package io.eventsql.spring.boot;

import io.eventsql.EventSqlException;
import io.eventsql.ShardIdentityException;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.internal.PropertyNames;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Describes databases with which EventSQL cannot start by their messages and the causes of these. */
final class EventSqlFailureAnalyzer extends AbstractFailureAnalyzer<EventSqlException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, EventSqlException cause) {
        StringBuilder description = new StringBuilder();
        for (@Nullable Throwable reason = cause; reason != null; reason = reason.getCause()) {
            description
                    .append(PropertyNames.inText(String.valueOf(reason.getMessage())))
                    .append('\n');
        }
        return new FailureAnalysis(description.toString().strip(), action(cause), cause);
    }

    private static String action(EventSqlException cause) {
        return switch (cause) {
            case UnknownStreamException unknown ->
                "Declare the stream with a StreamSpec bean or eventsql.streams[<name>].partitions=10, or set"
                        + " eventsql.create-missing-streams=true.";
            case ShardIdentityException wrong ->
                "Check that eventsql.shards lists every database of the cluster once, and that eventsql.schema is their"
                        + " schema.";
            default ->
                "Follow the description. If a database could not be reached, check its URL, user and password in"
                        + " eventsql.shards or spring.datasource.";
        };
    }
}
