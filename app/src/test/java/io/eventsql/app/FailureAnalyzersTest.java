package io.eventsql.app;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.benchmark.settings.InvalidSettingException;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.core.io.support.SpringFactoriesLoader;
import org.springframework.core.io.support.SpringFactoriesLoader.FailureHandler;

/** The failure analysis shown when the app fails to start, loaded like Spring Boot does. */
class FailureAnalyzersTest {
    private static final FailureHandler SKIP_THOSE_THAT_NEED_BEANS = FailureHandler.handleMessage((message, e) -> {});

    @Test
    void invalidSetting_isReportedInOneSentence() {
        var failure = new IllegalStateException("bean", new InvalidSettingException("DB0_PASSWORD", "is missing"));

        assertThat(analysis(failure).getDescription()).isEqualTo("DB0_PASSWORD is missing");
    }

    private static FailureAnalysis analysis(Throwable failure) {
        return SpringFactoriesLoader.forDefaultResourceLocation()
                .load(FailureAnalyzer.class, SKIP_THOSE_THAT_NEED_BEANS)
                .stream()
                .map(analyzer -> analyzer.analyze(failure))
                .filter(Objects::nonNull)
                .findFirst()
                .orElseThrow();
    }
}
