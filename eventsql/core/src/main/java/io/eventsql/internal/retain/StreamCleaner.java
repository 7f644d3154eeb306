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
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.SqlErrors;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Deletes all events of a stream. Each partition's log first begins at its head, then its old segments are dropped: after
 * every step the log is what it says, so a clearing that was broken off is simply done again. Thread-safe.
 */
public final class StreamCleaner {
    private static final int ATTEMPTS = 5;
    private static final long PAUSE_MS = 500;
    private static final int CONFIRMATION_BYTES = 8;

    private final Shards shards;
    private final StreamRegistry streams;

    public StreamCleaner(Shards shards, StreamRegistry streams) {
        this.shards = shards;
        this.streams = streams;
    }

    /** What clearing would delete, and what confirms it. */
    public ClearPreview preview(String name) {
        StreamSpec stream = streams.require(name);
        List<ClearPreview.ShardContent> contents = new ArrayList<>();
        StringBuilder state = new StringBuilder(shards.clusterId() + " " + name);
        for (Shard shard : shards.all()) {
            try {
                List<Head> heads = heads(shard, stream);
                heads.forEach(head ->
                        state.append(' ').append(head.streamId()).append(' ').append(head.logStart()));
                contents.add(content(shard, stream, heads));
            } catch (SQLException e) {
                throw new EventSqlException(
                        "What stream " + name + " holds on " + shard + " cannot be told: " + e.getMessage(), e);
            }
        }
        return new ClearPreview(name, contents, confirmation(state.toString()));
    }

    /**
     * Deletes all events.
     *
     * @return how many there were on all shards when this began
     */
    public long clear(String name, String confirmation) {
        ClearPreview now = preview(name);
        if (!now.confirmation().equals(confirmation)) {
            throw new InvalidInputException(
                    "confirmation", "is not that of stream " + name + " as it is now: look again at what it holds");
        }
        StreamSpec stream = streams.require(name);
        for (Shard shard : shards.all()) {
            inTurn("Stream " + name + " could not be cleared on " + shard, () -> requireUnheld(shard, stream));
        }
        for (Shard shard : shards.all()) {
            for (int each = 0; each < stream.partitions(); each++) {
                int partition = each;
                inTurn(
                        "Partition " + partition + " of stream " + name + " could not be cleared on " + shard,
                        () -> clear(shard, stream, partition));
            }
        }
        return now.events();
    }

    private static List<Head> heads(Shard shard, StreamSpec stream) throws SQLException {
        int streamId = shard.streamId(stream);
        return shard.require().call(c -> shard.tables().partitions().heads(c, new int[] {streamId}));
    }

    private static ClearPreview.ShardContent content(Shard shard, StreamSpec stream, List<Head> heads)
            throws SQLException {
        long events = 0;
        int segments = 0;
        for (Head head : heads) {
            events += head.head() - head.logStart();
            segments += below(shard, stream, head.partition(), head.head()).size();
            if (head.head() > head.logStart() && head.head() % stream.segmentSize() != 0) {
                segments++;
            }
        }
        return new ClearPreview.ShardContent(shard.number(), events, segments);
    }

    /** The segments of which all offsets are below one. */
    private static List<Segment> below(Shard shard, StreamSpec stream, int partition, long offset) throws SQLException {
        return shard.require().call(c -> shard.tables().clearing().segments(c, stream, partition)).stream()
                .filter(segment -> (segment.number() + 1) * stream.segmentSize() <= offset)
                .toList();
    }

    private static void requireUnheld(Shard shard, StreamSpec stream) throws SQLException {
        int streamId = shard.streamId(stream);
        List<String> consumers =
                shard.require().call(c -> shard.tables().clearing().heldBy(c, streamId));
        if (!consumers.isEmpty()) {
            throw new EventSqlException("Stream " + stream.name() + " is not cleared while it is consumed on " + shard
                    + ": close the members of " + String.join(", ", consumers));
        }
    }

    private static void clear(Shard shard, StreamSpec stream, int partition) throws SQLException {
        int streamId = shard.streamId(stream);
        ClearStatements clearing = shard.tables().clearing();
        shard.require().transaction(c -> {
            clearing.startAtHead(c, streamId, stream, partition);
            return partition;
        });
        long logStart = heads(shard, stream).get(partition).logStart();
        for (Segment segment : below(shard, stream, partition, logStart)) {
            if (segment.attachment() != Attachment.DETACHED) {
                shard.require().call(c -> {
                    clearing.detach(c, stream, partition, segment);
                    return partition;
                });
            }
            shard.require().transaction(c -> {
                clearing.drop(c, segment);
                return partition;
            });
        }
    }

    @FunctionalInterface
    private interface Step {
        void run() throws SQLException;
    }

    /** Somebody's lock stands in the way for a moment. Every step can be repeated. */
    private static void inTurn(String failure, Step step) {
        for (int attempt = 1; ; attempt++) {
            try {
                step.run();
                return;
            } catch (SQLException e) {
                if (attempt == ATTEMPTS || !SqlErrors.isRolledBack(e)) {
                    throw new EventSqlException(failure + ", repeat it: " + e.getMessage(), e);
                }
                pause();
            }
        }
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(PAUSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new EventSqlException("Interrupted while the stream was cleared, repeat it", e);
        }
    }

    private static String confirmation(String state) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(state.getBytes(UTF_8));
            return HexFormat.of().formatHex(hash, 0, CONFIRMATION_BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }
}
