package io.eventsql.spring.boot;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says how to choose one of several data sources. */
final class AmbiguousDataSourceFailureAnalyzer extends AbstractFailureAnalyzer<AmbiguousDataSourceException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, AmbiguousDataSourceException cause) {
        return new FailureAnalysis(
                cause.getMessage(),
                "Mark the one that EventSQL is to use with @EventSqlDataSource beside its @Bean, or make it @Primary, or"
                        + " give EventSQL databases of its own: eventsql.shards.<name>.url. Without EventSQL:"
                        + " eventsql.enabled=false.",
                cause);
    }
}
