package io.eventsql.spring.internal;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.InvalidInputException;
import org.junit.jupiter.api.Test;

/** Messages name the properties that a Spring application sets. */
class PropertyNamesTest {

    @Test
    void settings_inMessageAndField_becomeProperties() {
        InvalidInputException limit = PropertyNames.inException(
                new InvalidInputException("event.value", "has 5 bytes; the limit is 4 (settings.maxEventBytes)"));
        assertThat(limit)
                .hasMessage("event.value has 5 bytes; the limit is 4 (eventsql.max-event-bytes)")
                .extracting(InvalidInputException::field)
                .isEqualTo("event.value");

        InvalidInputException setting =
                PropertyNames.inException(new InvalidInputException("settings.publishTimeout", "must be positive"));
        assertThat(setting)
                .hasMessage("eventsql.publish-timeout must be positive")
                .extracting(InvalidInputException::field)
                .isEqualTo("eventsql.publish-timeout");
    }

    @Test
    void exception_withoutSettings_staysTheSame() {
        InvalidInputException other = new InvalidInputException("event.key", "is empty");
        assertThat(PropertyNames.inException(other)).isSameAs(other);
        RuntimeException another = new IllegalStateException("settings.lease");
        assertThat(PropertyNames.inException(another)).isSameAs(another);
    }
}
