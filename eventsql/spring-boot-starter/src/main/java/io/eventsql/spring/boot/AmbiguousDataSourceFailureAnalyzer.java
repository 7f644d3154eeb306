package io.eventsql.spring.boot;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Describes how to choose one of several data sources. */
final class AmbiguousDataSourceFailureAnalyzer extends AbstractFailureAnalyzer<AmbiguousDataSourceException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, AmbiguousDataSourceException cause) {
        return new FailureAnalysis(
                cause.getMessage(),
                "Annotate the @Bean method of the one that EventSQL is to use with @EventSqlDataSource, make it @Primary, or"
                        + " configure databases for EventSQL with eventsql.shards.<name>.url. To disable EventSQL, set"
                        + " eventsql.enabled=false.",
                cause);
    }
}
