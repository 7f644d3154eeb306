package io.eventsql.internal.retain;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.ClearPreview;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.ClearStatements;
import io.eventsql.internal.sql.ClearStatements.Attachment;
import io.eventsql.internal.sql.ClearStatements.Segment;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.SqlErrors;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;

/**
 * Deletes all events of a stream. For each partition the start of the log is moved to its head, then the old segments
 * are dropped. The log is consistent after every step, so an interrupted clearing is completed by a repeated call.
 * Thread-safe.
 */
public final class StreamCleaner {
    private static final int ATTEMPTS_MAX = 5;
    private static final long RETRY_MS = 500;
    private static final int CONFIRMATION_BYTES = 8;

    private final Shards shards;
    private final StreamRegistry streams;
    private final ScheduledDeletion scheduled;

    /** @param scheduled deletes the scheduled events */
    public StreamCleaner(Shards shards, StreamRegistry streams, ScheduledDeletion scheduled) {
        this.shards = shards;
        this.streams = streams;
        this.scheduled = scheduled;
    }

    /** Deletes the scheduled events of a stream in all databases; can be repeated. */
    @FunctionalInterface
    public interface ScheduledDeletion {
        void deleteOf(String stream) throws SQLException;
    }

    /** Returns what clearing would delete, and the confirmation that {@link #clear} requires. */
    public ClearPreview preview(String name) {
        StreamSpec stream = streams.require(name);
        shards.requireAllGiven("Stream " + name + " could not be cleared");
        List<ClearPreview.ShardContent> contents = new ArrayList<>();
        StringBuilder state = new StringBuilder(shards.clusterId() + " " + name);
        for (Shard shard : shards.all()) {
            try {
                OptionalInt streamId = shard.streams().readId(stream);
                List<Head> heads = streamId.isEmpty() ? List.of() : readHeads(shard, streamId.getAsInt());
                heads.forEach(head ->
                        state.append(' ').append(head.streamId()).append(' ').append(head.logStart()));
                contents.add(readContent(shard, heads));
            } catch (SQLException e) {
                throw new EventSqlException(
                        "The content of stream " + name + " on " + shard + " could not be determined: "
                                + e.getMessage(),
                        e);
            }
        }
        return new ClearPreview(name, contents, confirmation(state.toString()));
    }

    /**
     * Deletes all events.
     *
     * @return how many events there were on all shards when the call started
     */
    public long clear(String name, String confirmation) {
        ClearPreview now = preview(name);
        if (!now.confirmation().equals(confirmation)) {
            throw new InvalidInputException(
                    "confirmation",
                    "does not match the current content of stream " + name
                            + "; request a new preview and confirm that");
        }
        StreamSpec stream = streams.require(name);
        for (Shard shard : shards.all()) {
            retry("Stream " + name + " could not be cleared on " + shard, () -> requireNoActiveConsumer(shard, stream));
        }
        deleteScheduled(name, scheduled);
        for (Shard shard : shards.all()) {
            int partitions = countPartitions(shard, stream);
            for (int each = 0; each < partitions; each++) {
                int partition = each;
                retry(
                        "Partition " + partition + " of stream " + name + " could not be cleared on " + shard,
                        () -> clear(shard, stream, partition));
            }
        }
        return now.events();
    }

    /** Deletes the scheduled events of a stream. */
    static void deleteScheduled(String name, ScheduledDeletion scheduled) {
        retry("The scheduled events of stream " + name + " could not be deleted", () -> scheduled.deleteOf(name));
    }

    /** Returns the heads of all partitions. */
    static List<Head> readHeads(Shard shard, int streamId) throws SQLException {
        return shard.require().call(c -> shard.tables().partitions().heads(c, null, new int[] {streamId}));
    }

    static ClearPreview.ShardContent readContent(Shard shard, List<Head> heads) throws SQLException {
        ClearStatements clearing = shard.tables().clearing();
        long events = 0;
        int segments = 0;
        for (Head head : heads) {
            events += head.head() - head.logStart() - shard.require().read(c -> clearing.countCompacted(c, head));
            segments += shard.require().read(c -> clearing.countSegments(c, head));
        }
        return new ClearPreview.ShardContent(shard.number(), events, segments);
    }

    private static void requireNoActiveConsumer(Shard shard, StreamSpec stream) throws SQLException {
        OptionalInt streamId = shard.streams().readId(stream);
        if (streamId.isEmpty()) {
            return;
        }
        List<String> consumers =
                shard.require().read(c -> shard.tables().clearing().findActiveConsumers(c, streamId.getAsInt()));
        if (!consumers.isEmpty()) {
            throw new EventSqlException("Stream " + stream.name() + " cannot be cleared while it is consumed on "
                    + shard + "; close the members of " + String.join(", ", consumers));
        }
    }

    private static int countPartitions(Shard shard, StreamSpec stream) {
        try {
            return shard.streams().countPartitions(stream);
        } catch (SQLException e) {
            throw new EventSqlException(
                    "The partitions of stream " + stream.name() + " on " + shard + " could not be read: "
                            + e.getMessage(),
                    e);
        }
    }

    private static void clear(Shard shard, StreamSpec stream, int partition) throws SQLException {
        OptionalInt streamId = shard.streams().readId(stream);
        if (streamId.isEmpty()) {
            return;
        }
        ClearStatements clearing = shard.tables().clearing();
        shard.require().transaction(c -> {
            clearing.moveLogStartToHead(c, streamId.getAsInt(), partition);
            return partition;
        });
        List<Segment> expired = shard.require().read(c -> clearing.findExpired(c, streamId.getAsInt(), partition));
        for (Segment segment : expired) {
            if (segment.attachment() != Attachment.DETACHED) {
                shard.require().callOutsideTransaction(c -> {
                    clearing.detach(c, segment);
                    return partition;
                });
            }
            shard.require().transaction(c -> {
                clearing.drop(c, segment);
                return partition;
            });
        }
    }

    /** A part of clearing or deleting a stream. */
    @FunctionalInterface
    interface Step {
        void run() throws SQLException;
    }

    /**
     * Runs a step, and retries it if another transaction's lock was in the way, or retention has dropped a segment at the same
     * time. Every step can be repeated.
     */
    static void retry(String failure, Step step) {
        for (int attempt = 1; ; attempt++) {
            try {
                step.run();
                return;
            } catch (SQLException e) {
                boolean repeatable = SqlErrors.classify(e) == ErrorKind.ENVIRONMENT
                        || SqlErrors.state(e).equals(SqlErrors.UNDEFINED_TABLE)
                        || SqlErrors.state(e).equals(SqlErrors.OBJECT_NOT_IN_PREREQUISITE_STATE);
                if (attempt == ATTEMPTS_MAX || !repeatable) {
                    throw new EventSqlException(failure + "; retry the call: " + e.getMessage(), e);
                }
                pause();
            }
        }
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new EventSqlException("Interrupted while the stream was being cleared or deleted; retry the call", e);
        }
    }

    /** Returns a short hash of what is to be confirmed. */
    static String confirmation(String state) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(state.getBytes(UTF_8));
            return HexFormat.of().formatHex(hash, 0, CONFIRMATION_BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }
}
