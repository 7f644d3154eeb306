package io.eventsql.spring.boot;

import io.eventsql.InvalidInputException;
import io.eventsql.spring.internal.PropertyNames;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Describes a value that EventSQL rejects at start with the property that sets it. */
final class InvalidInputFailureAnalyzer extends AbstractFailureAnalyzer<InvalidInputException> {
    private static final String STREAM = "stream.";

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidInputException cause) {
        InvalidInputException translated = PropertyNames.inException(cause);
        return new FailureAnalysis(translated.getMessage(), action(translated.field()), cause);
    }

    private static String action(String field) {
        if (field.equals("stream.name")) {
            return "Change the name of the StreamSpec bean or the one below eventsql.streams.";
        }
        if (field.startsWith(STREAM)) {
            return "Change the StreamSpec bean or eventsql.streams[<name>]."
                    + PropertyNames.kebab(field.substring(STREAM.length()))
                    + ". EventSql.alterStream changes an existing stream, EventSql.grow its number of partitions; storage and"
                    + " key tracking cannot be changed.";
        }
        if (field.equals("shards")) {
            return "Change the name below eventsql.shards.";
        }
        if (field.startsWith("dataSource[")) {
            return "Increase spring.datasource.hikari.maximum-pool-size or eventsql.shards.<name>.pool-size, or lower"
                    + " concurrency or max-partitions of the transactional listeners.";
        }
        if (field.startsWith("eventType")) {
            return "Change the class or its @EventType; the name is stored with each event.";
        }
        if (field.startsWith("eventUpcaster")) {
            return "Change the EventUpcaster bean or the version in @EventType.";
        }
        return "Change " + field + ".";
    }
}
