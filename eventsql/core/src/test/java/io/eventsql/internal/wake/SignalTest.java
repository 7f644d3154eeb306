package io.eventsql.internal.wake;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.internal.wake.Signal.Change;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The payload of signals, as sent and as received. */
class SignalTest {
    private static final String SENDER = "5d7f";

    @Test
    void encode_changes_areDecodedInOrder() {
        Set<Change> changes =
                new LinkedHashSet<>(List.of(new Change(7, 0), Change.ofConsumer(12), new Change(2_000_000_000, 999)));
        String text = Signal.encode(SENDER, changes);
        assertThat(text).isEqualTo("5d7f 7:0,c12,2000000000:999");
        assertThat(Signal.decode(text)).containsExactlyElementsOf(changes);
    }

    @Test
    void encode_manyChanges_fitsIntoAPayloadAndWakesEverything() {
        Set<Change> changes = new LinkedHashSet<>();
        for (int partition = 0; partition < 300; partition++) {
            changes.add(new Change(Integer.MAX_VALUE, partition));
        }
        assertThat(Signal.encode("x".repeat(36), changes)).hasSizeLessThan(8_000);
        changes.add(new Change(1, 1));
        assertThat(Signal.encode(SENDER, changes)).isEqualTo("5d7f *");
        assertThat(Signal.decode("5d7f *")).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "5d7f", "5d7f ", "5d7f x", "5d7f 1", "5d7f 1:", "5d7f :1", "5d7f c", "5d7f 1:2,", "1:2x"})
    void decode_malformed_isEmpty(String text) {
        assertThat(Signal.decode(text)).isEmpty();
    }

    @Test
    void isFrom_onlyTheSender() {
        assertThat(Signal.isFrom(SENDER, "5d7f 7:0")).isTrue();
        assertThat(Signal.isFrom(SENDER, "5d7f0 7:0")).isFalse();
        assertThat(Signal.isFrom(SENDER, "")).isFalse();
    }
}
