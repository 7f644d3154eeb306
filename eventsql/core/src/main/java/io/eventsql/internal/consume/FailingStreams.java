package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The streams of a shard that could not be fetched although the database answered: because a table is locked or damaged, or a
 * right is missing. Each is fetched by itself, and again after a pause of its own, so that the others do not wait for it. Used
 * by the fetcher's thread.
 */
final class FailingStreams {
    private static final Logger LOG = LoggerFactory.getLogger(FailingStreams.class);
    /** The pause is at least this many times what the failed fetch took, which is seconds for a lock. */
    private static final int PAUSE_PER_FETCH = 4;

    private final Shard shard;
    private final Map<Integer, Failing> streams = new HashMap<>();

    private static final class Failing {
        final FailureSeries failures = new FailureSeries();
        boolean isPaused;
        long retryAt;
    }

    FailingStreams(Shard shard) {
        this.shard = shard;
    }

    /** Returns whether the stream's last fetch failed. */
    boolean contains(int streamId) {
        return streams.containsKey(streamId);
    }

    /** Returns whether the stream is not to be fetched yet. */
    boolean isPaused(int streamId) {
        @Nullable Failing stream = streams.get(streamId);
        return stream != null && stream.isPaused;
    }

    /** Returns how long the first pause still lasts, in nanoseconds; the largest number if there is none. */
    long nanosToRetry() {
        long now = System.nanoTime();
        return streams.values().stream()
                .filter(stream -> stream.isPaused)
                .mapToLong(stream -> stream.retryAt - now)
                .min()
                .orElse(Long.MAX_VALUE);
    }

    /** Ends the pauses that are over. */
    void endPauses() {
        long now = System.nanoTime();
        streams.values().stream()
                .filter(stream -> stream.retryAt - now <= 0)
                .forEach(stream -> stream.isPaused = false);
    }

    /** Records a failed fetch and begins a pause. */
    void failed(Membership membership, Exception e, long tookNanos) {
        Failing stream = streams.computeIfAbsent(membership.streamId(), id -> new Failing());
        FailureSeries.Failure failure = stream.failures.add(SqlErrors.message(e));
        long pauseMs = Math.max(failure.retryMs(), TimeUnit.NANOSECONDS.toMillis(tookNanos * PAUSE_PER_FETCH));
        stream.isPaused = true;
        stream.retryAt = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pauseMs);
        String name = membership.stream().name();
        if (failure.isNew()) {
            LOG.warn("Fetching stream {} from {} failed; retrying in {} ms: {}", name, shard, pauseMs, e.toString());
        } else {
            LOG.debug("Fetching stream {} from {} failed again; retrying in {} ms", name, shard, pauseMs, e);
        }
    }

    /** Records a successful fetch. */
    void succeeded(Membership membership) {
        @Nullable Failing ended = streams.remove(membership.streamId());
        if (ended != null) {
            LOG.info(
                    "Fetching stream {} from {} works again after {} failed attempts",
                    membership.stream().name(),
                    shard,
                    ended.failures.end());
        }
    }
}
