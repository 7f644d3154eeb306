package io.eventsql.internal.append;

import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.BlockAppendStatement;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The events of one partition in one append. The natural order is the lock order. Used by one thread. */
public final class PartitionGroup implements Comparable<PartitionGroup> {
    private final StreamSpec stream;
    private final int streamId;
    private final int partition;
    private final int mapVersion;
    private final List<Valid> events = new ArrayList<>();
    /** The call of each event; empty unless a call of the batch expects a version. */
    private final List<PublishCall> calls = new ArrayList<>();

    private long firstOffset = -1;
    private int leftOut;

    /**
     * @param mapVersion the version of the stream's map by which the events were routed; a negative one, of a map that accepts no
     *     append, is sent as the positive one, which it does not match
     */
    public PartitionGroup(StreamSpec stream, int streamId, int partition, int mapVersion) {
        this.stream = stream;
        this.streamId = streamId;
        this.partition = partition;
        this.mapVersion = Math.abs(mapVersion);
    }

    public StreamSpec stream() {
        return stream;
    }

    /** Returns the stream's id on the shard. */
    public int streamId() {
        return streamId;
    }

    public int partition() {
        return partition;
    }

    public int size() {
        return events.size();
    }

    /**
     * Adds an event after the others.
     *
     * @param value {@code null}: a tombstone
     */
    public void add(@Nullable String key, byte @Nullable [] value, @Nullable String headers) {
        add(new Valid(key, value, headers, value == null ? 0 : value.length));
    }

    void add(Valid event) {
        events.add(event);
    }

    /** Adds an event with its call after the others. */
    void add(Valid event, PublishCall call) {
        events.add(event);
        calls.add(call);
    }

    Valid event(int index) {
        return events.get(index);
    }

    PublishCall call(int index) {
        return calls.get(index);
    }

    /** Records that the database has not stored some of the events. */
    void leftOut(int count) {
        leftOut += count;
    }

    /** Returns how many of the events are stored, after {@link #storedAt}. */
    int storedSize() {
        return events.size() - leftOut;
    }

    /** Records the offset at which the database has stored the first event; the others follow without gaps. */
    void storedAt(long offset) {
        firstOffset = offset;
    }

    /** Returns the offset of the first event; -1 before {@link #storedAt}. */
    long firstOffset() {
        return firstOffset;
    }

    /** Returns the offset after the last event. */
    long nextOffset() {
        return firstOffset + storedSize();
    }

    @Override
    public int compareTo(PartitionGroup other) {
        int byStream = Integer.compare(streamId, other.streamId);
        return byStream != 0 ? byStream : Integer.compare(partition, other.partition);
    }

    /** Returns the version of the map of each group's stream. */
    public static int[] mapVersions(List<PartitionGroup> groups) {
        int[] versions = new int[groups.size()];
        for (int i = 0; i < versions.length; i++) {
            versions[i] = groups.get(i).mapVersion;
        }
        return versions;
    }

    /** Returns whether all groups are of streams that store blocks: then {@link #toBlocks} is the faster way to append them. */
    static boolean areBlocks(List<PartitionGroup> groups) {
        for (PartitionGroup group : groups) {
            if (group.stream.storage() != Storage.BLOCKS) {
                return false;
            }
        }
        return true;
    }

    /** Returns the events of groups in the lock order as blocks. */
    static BlockAppendStatement.Blocks toBlocks(List<PartitionGroup> groups) {
        BlockAppendStatement.Packer packer = new BlockAppendStatement.Packer(groups.size());
        for (PartitionGroup group : groups) {
            packer.begin(group.stream.name(), group.streamId, group.partition);
            for (Valid event : group.events) {
                packer.add(event.key(), event.value(), event.headers());
            }
        }
        return packer.finish();
    }

    /** Returns the rows of the append statement for groups in the lock order. */
    public static AppendStatement.Rows toRows(List<PartitionGroup> groups) {
        int size = 0;
        for (PartitionGroup group : groups) {
            size += group.events.size();
        }
        String[] streams = new String[groups.size()];
        int[] streamIds = new int[groups.size()];
        int[] partitions = new int[groups.size()];
        int[] counts = new int[groups.size()];
        @Nullable String[] keys = new String[size];
        byte[] @Nullable [] values = new byte[size][];
        @Nullable String[] headers = new String[size];
        int row = 0;
        for (int g = 0; g < groups.size(); g++) {
            PartitionGroup group = groups.get(g);
            streams[g] = group.stream.name();
            streamIds[g] = group.streamId;
            partitions[g] = group.partition;
            counts[g] = group.events.size();
            for (Valid event : group.events) {
                keys[row] = event.key();
                values[row] = event.value();
                headers[row] = event.headers();
                row++;
            }
        }
        return new AppendStatement.Rows(streams, streamIds, partitions, counts, keys, values, headers);
    }
}
