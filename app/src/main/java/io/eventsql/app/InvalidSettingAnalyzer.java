package io.eventsql.app;

import io.eventsql.benchmark.settings.InvalidSettingException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Has a wrong setting shown as one sentence when the app does not start, instead of a page of stack trace. */
final class InvalidSettingAnalyzer extends AbstractFailureAnalyzer<InvalidSettingException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidSettingException cause) {
        return new FailureAnalysis(cause.getMessage(), "Set the environment variable and start again.", cause);
    }
}
