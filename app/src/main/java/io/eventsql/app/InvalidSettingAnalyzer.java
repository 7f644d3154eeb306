package io.eventsql.app;

import io.eventsql.benchmark.settings.InvalidSettingException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Reports an invalid setting at startup as one sentence instead of a stack trace. */
final class InvalidSettingAnalyzer extends AbstractFailureAnalyzer<InvalidSettingException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidSettingException cause) {
        return new FailureAnalysis(cause.getMessage(), "Correct the environment variable and restart.", cause);
    }
}
