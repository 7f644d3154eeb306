package io.eventsql.internal.consume;

import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Pauses a partition when events of several keys have failed for good in a row, without a success in between, as they do
 * while a service behind the handler is unavailable. Until it closes again, no failed event is dead-lettered or parked.
 * Thread-safe: the lanes of a partition share it.
 *
 * <pre>
 *            failuresMax in a row             pause over
 *   CLOSED ───────────────────────▶ OPEN ────────────────▶ HALF_OPEN: one call of the handler
 *     ▲                              ▲                         │   │
 *     │                              └─────────────────────────┘   │
 *     │                                fails: twice the pause      │ succeeds
 *     └────────────────────────────────────────────────────────────┘
 * </pre>
 *
 * <p>A call that was begun before it opened and succeeds closes it, too. An exception that is never retried says something
 * about its event, not about a service: it does not count.
 */
final class CircuitBreaker {
    /** A circuit breaker that never opens. */
    static final CircuitBreaker OFF = new CircuitBreaker(0, RetryPolicy.defaults());

    /** The first pause and the longest one; both are at least the longest delay between two attempts. */
    private static final long PAUSE_FIRST_MS = 1_000;

    private static final long PAUSE_MAX_MS = 60_000;
    private static final int PAUSE_DOUBLINGS_MAX = 10;
    /** The delay before a lane asks again whether the call of another lane has closed the circuit. */
    private static final long HALF_OPEN_CHECK_MS = 200;

    private static final Admission ADMITTED = new Admission(0, false);
    private static final Admission ADMITTED_ALONE = new Admission(0, true);

    private enum State {
        CLOSED,
        OPEN,
        HALF_OPEN
    }

    private final LongSupplier clock;
    private final int failuresMax;
    private final long pauseFirstMs;
    private final long pauseMaxMs;
    private volatile State state = State.CLOSED;
    private volatile int failures;
    private @Nullable String keyOfFirst;
    private boolean ofSeveralKeys;
    private int pauses;
    private long pausedUntilNanos;

    /**
     * @param failuresMax the number of failures in a row at which it opens; 0: never
     * @param retry pauses begin where its delays end
     */
    CircuitBreaker(int failuresMax, RetryPolicy retry) {
        this(failuresMax, retry, System::nanoTime);
    }

    /** @param clock a clock in nanoseconds, such as {@link System#nanoTime()} */
    CircuitBreaker(int failuresMax, RetryPolicy retry, LongSupplier clock) {
        this.clock = clock;
        this.failuresMax = failuresMax;
        this.pauseFirstMs = Math.max(PAUSE_FIRST_MS, retry.maxDelay().toMillis());
        this.pauseMaxMs = Math.max(PAUSE_MAX_MS, pauseFirstMs);
    }

    /**
     * Whether the handler may be called.
     *
     * @param waitMs the delay before asking again, in milliseconds; 0: it may be called now
     * @param isAlone whether this is the only call while the circuit is half-open; its end must be reported
     */
    record Admission(long waitMs, boolean isAlone) {}

    /**
     * A pause has begun.
     *
     * @param failures the number of failures in a row
     * @param isFirst whether the circuit was closed before
     */
    record Pause(int failures, Duration delay, boolean isFirst) {}

    boolean isOpen() {
        return state != State.CLOSED;
    }

    /** Asks to call the handler. */
    Admission admit() {
        return isOpen() ? admitWhileOpen() : ADMITTED;
    }

    private synchronized Admission admitWhileOpen() {
        long leftNanos = pausedUntilNanos - clock.getAsLong();
        return switch (state) {
            case CLOSED -> ADMITTED;
            case HALF_OPEN -> new Admission(HALF_OPEN_CHECK_MS, false);
            case OPEN -> {
                if (leftNanos > 0) {
                    yield new Admission(TimeUnit.NANOSECONDS.toMillis(leftNanos) + 1, false);
                }
                state = State.HALF_OPEN;
                yield ADMITTED_ALONE;
            }
        };
    }

    /**
     * Records a success.
     *
     * @return whether it has closed the circuit
     */
    boolean recordSuccess() {
        return (failures > 0 || isOpen()) && close();
    }

    private synchronized boolean close() {
        boolean wasOpen = isOpen();
        state = State.CLOSED;
        failures = 0;
        pauses = 0;
        ofSeveralKeys = false;
        return wasOpen;
    }

    /** Records that an admitted call has ended without a result that counts. */
    synchronized void recordNoResult(Admission admission) {
        if (admission.isAlone() && state == State.HALF_OPEN) {
            state = State.OPEN;
            pausedUntilNanos = clock.getAsLong();
        }
    }

    /**
     * Records a failure.
     *
     * @param isForGood whether the event has no attempt left
     * @return the pause that begins with it
     */
    synchronized Optional<Pause> recordFailure(StoredEvent event, Admission admission, boolean isForGood) {
        boolean isAlone = admission.isAlone() && state == State.HALF_OPEN;
        if (failuresMax == 0 || !(isAlone || (isForGood && !isOpen()))) {
            return Optional.empty();
        }
        countFailure(event.key());
        if (!isAlone && (failures < failuresMax || !ofSeveralKeys)) {
            return Optional.empty();
        }
        Duration delay = Duration.ofMillis(pauseMs());
        pauses++;
        state = State.OPEN;
        pausedUntilNanos = clock.getAsLong() + delay.toNanos();
        return Optional.of(new Pause(failures, delay, pauses == 1));
    }

    /** Events without a key count as of several keys; with a limit of one failure there is no other key to wait for. */
    private synchronized void countFailure(@Nullable String key) {
        if (failures == 0) {
            keyOfFirst = key;
        }
        ofSeveralKeys |= failuresMax == 1 || key == null || !key.equals(keyOfFirst);
        failures++;
    }

    /** Returns a duration of which half is fixed and the rest random. */
    private long pauseMs() {
        long longest = Math.min(pauseMaxMs, pauseFirstMs << Math.min(pauses, PAUSE_DOUBLINGS_MAX));
        return longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2 + 1);
    }
}
