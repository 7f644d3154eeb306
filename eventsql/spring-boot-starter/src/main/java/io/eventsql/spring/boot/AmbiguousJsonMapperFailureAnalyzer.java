package io.eventsql.spring.boot;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Describes how to choose one of several JSON mappers. */
final class AmbiguousJsonMapperFailureAnalyzer extends AbstractFailureAnalyzer<AmbiguousJsonMapperException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, AmbiguousJsonMapperException cause) {
        return new FailureAnalysis(
                cause.getMessage(),
                "Make the one that EventSQL is to use @Primary, or define an EventSerializer bean: new"
                        + " JacksonEventSerializer(mapper, upcasters).",
                cause);
    }
}
