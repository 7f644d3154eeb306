package io.eventsql.internal.aggregate;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ContinuousAggregate.Measure;
import io.eventsql.ContinuousAggregate.Window;
import java.math.BigDecimal;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class UnitedWindowsTest {
    private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

    private static Window window(String key, long events, int... values) {
        Measure measure = new Measure(0, BigDecimal.ZERO, null, null);
        for (int value : values) {
            BigDecimal number = BigDecimal.valueOf(value);
            measure = measure.plus(new Measure(1, number, number, number));
        }
        return new Window(START, key, events, Map.of("n", measure));
    }

    @Test
    void windows_ofTheSameKey_areAddedUp() {
        assertThat(UnitedWindows.of(
                        List.of(
                                List.of(window(null, 1), window("a", 2, 1, 5)),
                                List.of(window(null, 3, 8), window("a", 1, 9), window("b", 1))),
                        10))
                .containsExactly(window(null, 4, 8), window("a", 3, 1, 5, 9), window("b", 1));
        assertThat(window("a", 3, 1, 5, 9).measures().get("n").average()).isEqualByComparingTo("5");
        assertThat(window("a", 1).measures().get("n").average()).isNull();
    }

    @Test
    void windows_orderAndLimit_areThoseOfTheDatabases() {
        String supplementary = new String(Character.toChars(0x1F600));
        assertThat(UnitedWindows.of(
                        List.of(
                                List.of(window("Z", 1), window("a", 1), window("\uFF01", 1)),
                                List.of(window("é", 1), window(supplementary, 1))),
                        4))
                .extracting(Window::key)
                .containsExactly("Z", "a", "é", "\uFF01");
    }
}
