package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which streams of a shard are fetched with a function of their own, whose plans the database keeps: the busy ones, because
 * each connection keeps the plans of each such function in memory. Without one a fetch costs more and returns the same.
 * Used by the fetcher's thread alone.
 */
final class FetchFunctions {
    private static final Logger LOG = LoggerFactory.getLogger(FetchFunctions.class);
    /** How often the functions are checked: they must know the next segment before the head is in it. */
    private static final long CHECK_NANOS = TimeUnit.SECONDS.toNanos(5);
    /** The least number of fetches with events, between two checks, that make a stream a busy one. */
    private static final int BUSY_FETCHES = 100;
    /** The most streams with a function: each of them takes a round trip of its own, the others share one. */
    private static final int STREAMS_MAX = 8;

    private final Shard shard;
    private long checkedAt = System.nanoTime();
    private Map<StreamKey, Integer> fetches = new HashMap<>();
    /** Streams that have become busy since the last check. */
    private final Set<StreamKey> newlyBusy = new HashSet<>();
    /** The statements that call the functions. */
    private final Map<StreamKey, String> statements = new HashMap<>();

    FetchFunctions(Shard shard) {
        this.shard = shard;
    }

    /** A stream's id belongs to one incarnation of the database. */
    private record StreamKey(int streamId, String incarnation) {
        static StreamKey of(Membership membership) {
            return new StreamKey(membership.streamId(), membership.incarnation());
        }
    }

    /** Returns the statement that calls the function of a member's stream; {@code null} if it has none. */
    @Nullable
    String statement(Membership membership) {
        return statements.get(StreamKey.of(membership));
    }

    /** Records a fetch that has returned events. */
    void recordFetch(Membership membership) {
        StreamKey stream = StreamKey.of(membership);
        int number = fetches.merge(stream, 1, Integer::sum);
        if (number == BUSY_FETCHES && !statements.containsKey(stream)) {
            newlyBusy.add(stream);
        }
    }

    /** Drops a statement that has failed. If its stream is still busy, it gets another one at the next check. */
    void drop(Membership membership, SQLException e) {
        statements.remove(StreamKey.of(membership));
        LOG.debug("The fetch function of stream {} on {} failed; not using it", membership.spec().stream(), shard, e);
    }

    /** Creates or updates the functions of busy streams: at intervals, and of one that has just become busy. */
    void check() {
        for (StreamKey stream : newlyBusy) {
            if (statements.size() < STREAMS_MAX) {
                prepare(stream);
            }
        }
        newlyBusy.clear();
        if (System.nanoTime() - checkedAt < CHECK_NANOS) {
            return;
        }
        checkedAt = System.nanoTime();
        Map<StreamKey, Integer> counted = fetches;
        fetches = new HashMap<>();
        counted.values().removeIf(number -> number < BUSY_FETCHES);
        statements.keySet().removeIf(stream -> !counted.containsKey(stream));
        // Those that have a function keep it, because each new one is created in the database.
        counted.keySet().stream()
                .sorted(Comparator.comparingInt((StreamKey stream) -> statements.containsKey(stream) ? 0 : 1)
                        .thenComparingInt(stream -> -counted.getOrDefault(stream, 0)))
                .limit(STREAMS_MAX)
                .toList()
                .forEach(this::prepare);
    }

    private void prepare(StreamKey stream) {
        statements.remove(stream);
        try {
            shard.require()
                    .call(c -> shard.tables().fetch().prepare(c, stream.streamId()))
                    .ifPresent(statement -> statements.put(stream, statement));
        } catch (SQLException | RuntimeException e) { // such as a missing privilege
            LOG.debug("The fetch function of stream {} on {} could not be prepared", stream.streamId(), shard, e);
        }
    }
}
