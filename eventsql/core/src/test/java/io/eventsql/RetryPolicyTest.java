package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Which failures are retried; the ranges of the fields are tested by {@code ConsumerSpecTest}. */
class RetryPolicyTest {
    private static final RetryPolicy ALL = RetryPolicy.defaults();
    private static final RetryPolicy ONLY_SQL = ALL.withRetryable(Set.of(SQLException.class));
    private static final RetryPolicy NEVER_IO = ALL.withFatal(Set.of(IOException.class));

    @Test
    void allowsAttemptAfter_defaults_isUnlimited() {
        assertThat(ALL.allowsAttemptAfter(1_000_000, new Error())).isTrue();
    }

    @Test
    void forPolicy_attemptsNotSet_areUnlimitedOnlyWithStop() {
        assertThat(ALL.forPolicy(FailurePolicy.STOP).maxAttempts()).isEqualTo(RetryPolicy.UNLIMITED);
        assertThat(ALL.forPolicy(FailurePolicy.DEAD_LETTER).maxAttempts()).isEqualTo(10);
        assertThat(ALL.forPolicy(FailurePolicy.PARK_KEY).maxAttempts()).isEqualTo(10);
    }

    @Test
    void forPolicy_attemptsSet_areKept() {
        for (FailurePolicy policy : FailurePolicy.values()) {
            assertThat(ALL.withMaxAttempts(3).forPolicy(policy).maxAttempts()).isEqualTo(3);
            assertThat(ALL.withMaxAttempts(RetryPolicy.UNLIMITED)
                            .forPolicy(policy)
                            .maxAttempts())
                    .isEqualTo(RetryPolicy.UNLIMITED);
        }
    }

    @Test
    void allowsAttemptAfter_maxAttempts_isFalse() {
        assertThat(ALL.withMaxAttempts(3).allowsAttemptAfter(2, new Exception()))
                .isTrue();
        assertThat(ALL.withMaxAttempts(3).allowsAttemptAfter(3, new Exception()))
                .isFalse();
    }

    @Test
    void allowsAttemptAfter_retryable_includesSubclassesAndExcludesOthers() {
        assertThat(ONLY_SQL.allowsAttemptAfter(1, new SQLTransientConnectionException()))
                .isTrue();
        assertThat(ONLY_SQL.allowsAttemptAfter(1, new IOException())).isFalse();
    }

    @Test
    void allowsAttemptAfter_retryableCause_isTrue() {
        assertThat(ONLY_SQL.allowsAttemptAfter(1, wrapped(new SQLException()))).isTrue();
        assertThat(ONLY_SQL.allowsAttemptAfter(1, wrapped(new IOException()))).isFalse();
    }

    @Test
    void allowsAttemptAfter_fatalCause_isFalse() {
        assertThat(NEVER_IO.allowsAttemptAfter(1, new UncheckedIOException(new IOException())))
                .isFalse();
        assertThat(NEVER_IO.allowsAttemptAfter(1, wrapped(new IOException()))).isFalse();
        assertThat(NEVER_IO.allowsAttemptAfter(1, wrapped(new SQLException()))).isTrue();
    }

    @Test
    void allowsAttemptAfter_retryableWithFatalCause_isFalse() {
        RetryPolicy both = ONLY_SQL.withFatal(Set.of(IOException.class));
        assertThat(both.allowsAttemptAfter(1, new SQLException(new IOException())))
                .isFalse();
        assertThat(both.allowsAttemptAfter(1, new IOException(new SQLException())))
                .isFalse();
    }

    @Test
    void allowsAttemptAfter_cyclicCauses_terminates() {
        Exception first = new IllegalStateException();
        Exception second = new IllegalArgumentException(first);
        first.initCause(second);
        assertThat(ONLY_SQL.allowsAttemptAfter(1, first)).isFalse();
        assertThat(NEVER_IO.allowsAttemptAfter(1, first)).isTrue();
        assertThat(ALL.withFatal(Set.of(IllegalArgumentException.class)).allowsAttemptAfter(1, first))
                .isFalse();
    }

    private static Exception wrapped(Exception cause) {
        return new IllegalStateException(new RuntimeException(cause));
    }
}
