package io.eventsql.internal.retain;

import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SegmentTable.Room;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.SQLException;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adds the next segments of each partition ahead of its head: room for two batches as large as the last, and a spare one
 * above. It knows the head from the appends of this process, so an idle process costs nothing. An append to a partition without room
 * fails, calls {@link #ensureRoom} and is repeated. Thread-safe.
 */
public final class SegmentKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentKeeper.class);
    private static final long RETRY_MIN_MS = 1_000;
    private static final long RETRY_MAX_MS = 30_000;
    private static final int BACKOFF_SHIFT_MAX = 10;
    /** The limit of the database's function. */
    private static final long ROOM_EVENTS_MAX = 200_000;

    private final Map<Partition, Segments> known = new ConcurrentHashMap<>();

    private record Partition(int shard, String stream, int number) {}

    /** What is known of a partition's segments. Thread-safe. */
    private static final class Segments {
        /** Of adding in the background, by one task at a time. */
        private final FailureSeries failures = new FailureSeries();

        /** {@code null} until segments were added. */
        private @Nullable Room room;

        private boolean isAdding;
        private long head;
        private long wanted;
        private long headWhenBegun;

        Segments(@Nullable Room room) {
            this.room = room;
        }

        /** Takes note of an append; returns whether to add segments now. The caller then adds them and calls {@link #added}. */
        synchronized boolean appended(long newHead, long events) {
            head = Math.max(head, newHead);
            wanted = events;
            return begin(room == null || room.isExhausted(head, events));
        }

        /** Returns whether to add more: the head has moved since they were begun, and no append may follow. */
        synchronized boolean added(Room now) {
            room = now;
            isAdding = false;
            return begin(head > headWhenBegun && now.isExhausted(head, wanted));
        }

        private boolean begin(boolean isDue) {
            boolean begins = isDue && !isAdding;
            if (begins) {
                isAdding = true;
                headWhenBegun = head;
            }
            return begins;
        }

        /** Returns for how many events above the head there is to be room. */
        synchronized long wanted() {
            return wanted;
        }
    }

    /** Forgets which segments a shard has, because its database has another incarnation. Reports nothing. */
    public Runnable forget(Shard shard) {
        known.keySet().removeIf(each -> each.shard() == shard.number());
        return () -> {};
    }

    /**
     * Handles an append that moved a partition's head to {@code head}: adds segments in the background if they are due.
     *
     * @param events the number of events appended
     */
    public void appended(Shard shard, StreamSpec stream, int partition, long head, int events) {
        Partition key = new Partition(shard.number(), stream.name(), partition);
        @Nullable Segments found = known.get(key); // without a lock
        Segments segments = found != null ? found : known.computeIfAbsent(key, unknown -> new Segments(null));
        if (segments.appended(head, wantedRoom(events))) {
            shard.inBackground(() -> addInBackground(shard, stream, key, segments));
        }
    }

    private static long wantedRoom(int events) {
        return Math.min(ROOM_EVENTS_MAX, 2L * events);
    }

    private void addInBackground(Shard shard, StreamSpec stream, Partition partition, Segments segments) {
        try {
            @Nullable Room room = addInSameIncarnation(shard, stream, partition.number(), segments.wanted());
            if (room == null) {
                known.remove(partition, segments);
                return;
            }
            if (segments.failures.end() > 0) {
                LOG.info("Added segments to partition {} of stream {} on {}", partition.number(), stream.name(), shard);
            }
            if (segments.added(room)) {
                shard.inBackground(() -> addInBackground(shard, stream, partition, segments));
            }
        } catch (SQLException | RuntimeException e) { // data sources have exceptions of their own
            FailureSeries.Failure failure = segments.failures.add(e.toString());
            long delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failure.number() - 1, BACKOFF_SHIFT_MAX));
            if (failure.isNew()) {
                LOG.warn(
                        "Adding segments to partition {} of stream {} on {} failed; retrying in {} ms: {}",
                        partition.number(),
                        stream.name(),
                        shard,
                        delayMs,
                        e.getMessage());
            } else {
                LOG.debug("Adding segments on {} failed again; retrying in {} ms", shard, delayMs, e);
            }
            shard.inBackground(delayMs, () -> addInBackground(shard, stream, partition, segments));
        }
    }

    /**
     * Returns {@code null} if the database has another incarnation, where the stream may be another one, or the stream was
     * deleted: the next append finds out which segments are due.
     */
    private static @Nullable Room addInSameIncarnation(Shard shard, StreamSpec stream, int partition, long events)
            throws SQLException {
        String incarnation = shard.incarnation(); // before the id
        try {
            OptionalInt streamId = shard.streams().findId(stream);
            if (streamId.isPresent()) {
                return add(shard, incarnation, stream, streamId.getAsInt(), partition, events);
            }
            LOG.debug("Stream {} does not exist on {}; adding no segments", stream.name(), shard);
            return null;
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.NO_PARTITION)) {
                LOG.debug("Stream {} was deleted on {}; adding no segments", stream.name(), shard, e);
                shard.streams().forget(stream.name());
                return null;
            }
            if (shard.recheckAfter(e, incarnation) && !shard.incarnation().equals(incarnation)) {
                return null;
            }
            throw e;
        }
    }

    /**
     * Returns the room there is afterwards, with the number of segments added.
     *
     * @throws SQLException {@link SqlErrors#NO_PARTITION} if the stream was deleted, however the database found that out:
     *     its rows and tables may be gone before any statement of the transaction
     */
    private static Room add(
            Shard shard, String incarnation, StreamSpec stream, int streamId, int partition, long events)
            throws SQLException {
        int added = 0;
        Room room;
        try {
            do {
                room = shard.require()
                        .transaction(
                                c -> shard.tables().segments().ensure(c, incarnation, streamId, partition, events));
                added += room.added();
            } while (room.isPartial());
        } catch (SQLException e) {
            if (mayLackStream(e) && !exists(shard, stream, streamId, e)) {
                throw new SQLException("the stream was deleted while segments were added", SqlErrors.NO_PARTITION, e);
            }
            throw e;
        }
        return new Room(added, room.spareOffset());
    }

    private static boolean mayLackStream(SQLException e) {
        return switch (SqlErrors.classify(e)) {
            case CONTENT, PROTOCOL -> !SqlErrors.isOtherIncarnation(e);
            case NOT_SENT, IN_DOUBT, ENVIRONMENT -> false;
        };
    }

    private static boolean exists(Shard shard, StreamSpec stream, int streamId, SQLException failure) {
        try {
            return shard.streams()
                    .find(stream.name())
                    .filter(row -> row.id() == streamId)
                    .isPresent();
        } catch (SQLException e) {
            failure.addSuppressed(e);
            return true; // not known; the failure stands
        }
    }

    /**
     * Adds the segments that the next append to a partition needs, before it returns.
     *
     * @param incarnation that of the database when the stream's id was read
     * @param events the number of events of the append
     * @return whether a segment was missing
     * @throws SQLException {@link SqlErrors#OTHER_INCARNATION} if the database has another incarnation: nothing was added;
     *     {@link SqlErrors#NO_PARTITION} if the stream was deleted
     */
    public boolean ensureRoom(
            Shard shard, String incarnation, StreamSpec stream, int streamId, int partition, int events)
            throws SQLException {
        Room room = add(shard, incarnation, stream, streamId, partition, wantedRoom(events));
        // What was known before was wrong: segments were dropped, or the stream was created anew.
        known.put(new Partition(shard.number(), stream.name(), partition), new Segments(room));
        return room.added() > 0;
    }
}
