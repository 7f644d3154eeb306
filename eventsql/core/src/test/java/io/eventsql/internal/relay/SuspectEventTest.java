package io.eventsql.internal.relay;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SuspectEventTest {
    private final SuspectEvent suspect = new SuspectEvent();

    @Test
    void failed_noOtherEventSucceeds_isNeverTheCause() {
        for (int i = 0; i < 100; i++) {
            assertThat(suspect.failed(7)).isFalse();
        }
    }

    @Test
    void failed_twiceAndAgainAfterAnotherSucceeded_isTheCause() {
        assertThat(suspect.failed(7)).isFalse();
        assertThat(suspect.isProbeDue()).isFalse();
        assertThat(suspect.failed(7)).isFalse();
        assertThat(suspect.isProbeDue()).isTrue();
        assertThat(suspect.is(7)).isTrue();
        assertThat(suspect.is(8)).isFalse();
        suspect.anotherSucceeded();
        assertThat(suspect.isProbeDue()).isFalse();
        assertThat(suspect.failed(7)).isTrue();
    }

    @Test
    void failed_anotherEvent_startsAgain() {
        suspect.failed(7);
        suspect.failed(7);
        suspect.anotherSucceeded();
        assertThat(suspect.failed(8)).isFalse();
        assertThat(suspect.isProbeDue()).isFalse();
    }

    @Test
    void clear_afterSuccess_startsAgain() {
        suspect.failed(7);
        suspect.failed(7);
        suspect.anotherSucceeded();
        suspect.clear();
        assertThat(suspect.is(7)).isFalse();
        assertThat(suspect.failed(7)).isFalse();
    }
}
