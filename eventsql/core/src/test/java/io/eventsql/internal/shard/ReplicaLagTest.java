package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;

class ReplicaLagTest {
    private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

    private final ReplicaLag lag = new ReplicaLag(Duration.ofSeconds(10));

    @Test
    void lag_replicaNotSeenYet_isUnknownAndNotUsable() {
        assertThat(lag.lag()).isNull();
        assertThat(lag.isUsable()).isFalse();
        lag.recordPrimary(START);
        assertThat(lag.lag()).isNull();
        assertThat(lag.isUsable()).isFalse();
    }

    @Test
    void lag_replicaHasWhatThePrimaryRecorded_isZero() {
        lag.recordPrimary(START);
        lag.recordReplica(START);
        assertThat(lag.lag()).isEqualTo(Duration.ZERO);
        assertThat(lag.isUsable()).isTrue();
    }

    @Test
    void lag_replicaDoesNotAnswer_growsUntilItIsNotUsable() {
        lag.recordPrimary(START);
        lag.recordReplica(START);
        lag.recordProblem("refused");
        lag.recordPrimary(START.plusSeconds(11));
        assertThat(lag.isUsable())
                .as("it has had no time to replay the last one")
                .isTrue();
        lag.recordPrimary(START.plusSeconds(12));
        assertThat(lag.lag()).isEqualTo(Duration.ofSeconds(11));
        assertThat(lag.isUsable()).isFalse();
        assertThat(lag.problem()).isEqualTo("refused");

        lag.recordReplica(START.plusSeconds(1));
        assertThat(lag.isUsable()).isTrue();
        assertThat(lag.problem()).isNull();
    }

    /** Such as behind an address that leads to another server each time, or after the primary's clock was set back. */
    @Test
    void lag_replicaIsSeenWithALaterTimeThanThePrimary_isZero() {
        lag.recordPrimary(START);
        lag.recordReplica(START.plusSeconds(3));
        assertThat(lag.lag()).isEqualTo(Duration.ZERO);
    }

    @Test
    void forget_usableBefore_isUnknown() {
        lag.recordPrimary(START);
        lag.recordReplica(START);
        lag.forget();
        assertThat(lag.isUsable()).isFalse();
        lag.recordPrimary(START.plusSeconds(1));
        assertThat(lag.isUsable()).isFalse();
        lag.recordReplica(START.plusSeconds(1));
        assertThat(lag.isUsable()).isTrue();
    }
}
