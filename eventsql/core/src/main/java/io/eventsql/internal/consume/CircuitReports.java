package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.consume.CircuitBreaker.Pause;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ForeignErrors;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports when circuit breakers of one member on one shard open and close: in the log, to listeners, and in the state of
 * the partition, which every process reads. Thread-safe.
 */
final class CircuitReports {
    private static final Logger LOG = LoggerFactory.getLogger(CircuitReports.class);

    private static final long STORE_RETRY_MS = 1_000;

    private final Shard shard;
    private final Listeners listeners;

    CircuitReports(Shard shard, Listeners listeners) {
        this.shard = shard;
        this.listeners = listeners;
    }

    /**
     * A pause has begun, the first one or a further one. It is not reported if the partition was lost during the call: no
     * report that the circuit is closed would follow.
     */
    void paused(Assignment assignment, StoredEvent event, Throwable error, Pause pause) {
        if (assignment.hasEnded()) {
            return;
        }
        if (pause.isFirst()) {
            ForeignErrors.log(
                    error,
                    shown -> LOG.warn(
                            "Circuit breaker of {} opened: {} events in a row failed for good; retrying offset {} in {}"
                                    + " ms, and applying {} to no event until a call of the handler succeeds",
                            assignment.name(),
                            pause.failures(),
                            event.offset(),
                            pause.delay().toMillis(),
                            assignment.spec().failurePolicy(),
                            shown));
        }
        listeners.call(l -> l.circuitBreakerOpened(assignment.name(), pause.failures(), pause.delay()));
        if (pause.isFirst()) {
            store(
                    assignment,
                    "circuit breaker open: " + pause.failures() + " events in a row failed for good, offset "
                            + event.offset() + ": " + ForeignErrors.text(error),
                    0,
                    new FailureSeries());
        }
    }

    /** A call of the handler has succeeded. */
    void closed(Assignment assignment) {
        LOG.info("Circuit breaker of {} closed: a call of the handler succeeded", assignment.name());
        listeners.call(l -> l.circuitBreakerClosed(assignment.name()));
        store(assignment, null, 0, new FailureSeries());
    }

    /** Stores, in the background, why the circuit is open, or that it is closed, whichever it is by then. */
    private void store(Assignment assignment, @Nullable String whyOpen, long delayMs, FailureSeries failures) {
        shard.inBackground(delayMs, () -> {
            if (!assignment.hasEnded()) {
                storeNow(assignment, whyOpen, failures);
            }
        });
    }

    private void storeNow(Assignment assignment, @Nullable String whyOpen, FailureSeries failures) {
        String condition = assignment.circuit().isOpen() ? whyOpen : null;
        try {
            shard.require()
                    .transaction(connection -> shard.tables()
                            .leases()
                            .setCondition(
                                    connection,
                                    assignment.consumerId(),
                                    assignment.memberId(),
                                    assignment.partition(),
                                    condition));
        } catch (SQLException | RuntimeException e) { // data sources have exceptions of their own
            report(assignment, condition == null ? "closed" : "open", failures, e);
            store(assignment, whyOpen, STORE_RETRY_MS, failures);
        }
    }

    private static void report(Assignment assignment, String condition, FailureSeries failures, Exception e) {
        if (!failures.add(e.toString()).isNew()) {
            LOG.debug("Storing that the circuit breaker of {} is {} failed again", assignment.name(), condition, e);
            return;
        }
        LOG.warn(
                "Storing that the circuit breaker of {} is {} failed; retrying every {} ms: {}",
                assignment.name(),
                condition,
                STORE_RETRY_MS,
                e.toString());
    }
}
