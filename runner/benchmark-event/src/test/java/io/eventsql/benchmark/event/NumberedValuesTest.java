package io.eventsql.benchmark.event;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class NumberedValuesTest {

    @Test
    void next_valuesAreThoseOfTheRunInOrder() {
        NumberedValues values = new NumberedValues("0123abcd", 0);

        for (int number = 0; number < 3; number++) {
            BenchmarkEvent event = BenchmarkEvent.decode(values.next());
            assertThat(event.run()).isEqualTo("0123abcd");
            assertThat(event.number()).isEqualTo(number);
            assertThat(event.warmup()).isFalse();
        }
    }

    @Test
    void next_size_isExact() {
        assertThat(new NumberedValues("0123abcd", 100).next()).hasSize(100);
    }
}
