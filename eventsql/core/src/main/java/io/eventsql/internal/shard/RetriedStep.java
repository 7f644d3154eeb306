package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A step of an operation that any process can complete, such as a growth. It is retried while it may succeed later: a lock is not
 * available, a connection is lost.
 */
public final class RetriedStep {
    private static final Logger LOG = LoggerFactory.getLogger(RetriedStep.class);
    private static final int ATTEMPTS_MAX = 40;
    private static final long RETRY_MS = 100;

    private RetriedStep() {}

    /**
     * Takes a step. An interrupt ends the call after an attempt that fails.
     *
     * @param failure what failed if it does, for the message
     * @param rejection returns what to throw for an error that no retry changes
     * @throws EventSqlException if the step fails with another error, for good or too often
     */
    public static <T> T take(
            String failure, Function<SQLException, Optional<RuntimeException>> rejection, Callable<T> step) {
        for (int attempt = 1; ; attempt++) {
            try {
                return step.call();
            } catch (SQLException e) {
                Optional<RuntimeException> rejected = rejection.apply(e);
                if (rejected.isPresent()) {
                    throw rejected.get();
                }
                boolean mayPass = SqlErrors.classify(e) != ErrorKind.CONTENT && attempt < ATTEMPTS_MAX;
                if (!mayPass || Thread.currentThread().isInterrupted()) {
                    throw new EventSqlException(failure + "; repeat the call to continue: " + SqlErrors.message(e), e);
                }
                LOG.debug("{}; retrying in {} ms", failure, RETRY_MS, e);
                pause();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new EventSqlException(failure, e);
            }
        }
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
