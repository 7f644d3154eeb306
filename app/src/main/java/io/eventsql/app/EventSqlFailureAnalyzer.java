package io.eventsql.app;

import io.eventsql.EventSqlException;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Has databases with which the app cannot start shown by their messages alone, the causes beneath. */
final class EventSqlFailureAnalyzer extends AbstractFailureAnalyzer<EventSqlException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, EventSqlException cause) {
        StringBuilder description = new StringBuilder();
        for (@Nullable Throwable reason = cause; reason != null; reason = reason.getCause()) {
            description.append(reason.getMessage()).append('\n');
        }
        return new FailureAnalysis(
                description.toString().strip(), "Check the databases, their addresses and passwords.", cause);
    }
}
