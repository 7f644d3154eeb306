package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.InvalidInputException;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

/** The ranges of the meters' settings. */
class EventSqlMetricsPropertiesTest {
    private static EventSqlMetricsProperties bind(Map<String, String> properties) {
        return new Binder(new MapConfigurationPropertySource(properties))
                .bindOrCreate("eventsql.metrics", EventSqlMetricsProperties.class);
    }

    @ParameterizedTest
    @ValueSource(strings = {"0s", "49ms", "301s"})
    void outboxInterval_outOfRange_isRejectedWithItsProperty(String interval) {
        assertThatThrownBy(() -> bind(Map.of("eventsql.metrics.outbox-interval", interval)))
                .rootCause()
                .isInstanceOf(InvalidInputException.class)
                .hasMessageStartingWith("eventsql.metrics.outbox-interval must be between 50 ms and 5 min, but is ");
    }

    @ParameterizedTest
    @CsvSource({"50ms, PT0.05S", "5m, PT5M"})
    void outboxInterval_atALimit_isAccepted(String interval, Duration expected) {
        assertThat(bind(Map.of("eventsql.metrics.outbox-interval", interval)).outboxInterval())
                .isEqualTo(expected);
    }

    @Test
    void defaults_areInRange() {
        assertThat(bind(Map.of()).outboxInterval()).isEqualTo(Duration.ofSeconds(10));
    }
}
