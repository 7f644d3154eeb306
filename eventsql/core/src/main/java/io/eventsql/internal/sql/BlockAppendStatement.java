package io.eventsql.internal.sql;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The statement that appends a batch to streams that store blocks: one round trip. {@link AppendStatement} can do that, too,
 * but lets the server pack the blocks.
 */
public final class BlockAppendStatement {
    // Indexes and locks: those of an append (AppendStatement), and the primary key of segment.
    private static final String APPEND = "SELECT eventsql.append_blocks_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Indexes and locks: as APPEND. The function's name comes before it.
    private static final String ARGUMENTS_TO_STREAM = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" + CommitWarnings.COLUMN;

    private final SqlSchema schema;
    private final String append;
    private final AppendFunctions functions;

    public BlockAppendStatement(SqlSchema schema) {
        this.schema = schema;
        append = schema.sql(APPEND);
        functions =
                new AppendFunctions(schema, AppendFunctions.OF_BLOCKS, AppendFunctions.STREAMS_MAX, System::nanoTime);
    }

    /**
     * A batch as the function takes it. The first four arrays have one element for each partition, sorted by stream id
     * and partition; the others one for each block, in the order of the partitions.
     *
     * @param counts the number of the partition's events
     * @param groups the block's partition, as an index from 1 into the first four arrays
     * @param ends the number of the partition's events up to the block's end
     * @param events the number of the block's events
     */
    @SuppressWarnings("ArrayRecordComponent") // arrays go to the driver as they are
    public record Blocks(
            String[] streams,
            int[] streamIds,
            int[] partitions,
            int[] counts,
            int[] groups,
            int[] ends,
            int[] events,
            byte[][] blocks) {}

    /** Packs the events of a batch, partition by partition. Used by one thread. */
    public static final class Packer {
        /** A row of that size still fits on a page, with all that belongs to it. */
        static final int BLOCK_BYTES_MAX = 8_000;

        private static final int FIELDS = 3;

        private final String[] streams;
        private final int[] streamIds;
        private final int[] partitions;
        private final int[] counts;
        private final List<int[]> positions = new ArrayList<>();
        private final List<byte[]> blocks = new ArrayList<>();
        private int group = -1;
        private int packed;
        private byte[] @Nullable [] fields = new byte[FIELDS * 64][];
        private int pending;
        private int dataBytes;

        /** Creates a packer for events of the given number of partitions. */
        public Packer(int groups) {
            streams = new String[groups];
            streamIds = new int[groups];
            partitions = new int[groups];
            counts = new int[groups];
        }

        /** Begins the next partition, in the order of stream id and partition. */
        public void begin(String stream, int streamId, int partition) {
            flush();
            group++;
            streams[group] = stream;
            streamIds[group] = streamId;
            partitions[group] = partition;
            packed = 0;
        }

        /**
         * Adds an event to the partition.
         *
         * @param value {@code null}: a tombstone
         * @param headers a JSON object or {@code null}
         */
        public void add(@Nullable String key, byte @Nullable [] value, @Nullable String headers) {
            byte @Nullable [] keyBytes = utf8(key);
            byte @Nullable [] headersBytes = utf8(headers);
            int eventBytes = length(keyBytes) + length(value) + length(headersBytes);
            if (pending > 0 && EventBlock.directoryBytes(pending + 1) + dataBytes + eventBytes > BLOCK_BYTES_MAX) {
                flush();
            }
            int at = FIELDS * pending;
            if (at == fields.length) {
                fields = Arrays.copyOf(fields, 2 * at);
            }
            fields[at] = keyBytes;
            fields[at + 1] = value;
            fields[at + 2] = headersBytes;
            pending++;
            dataBytes += eventBytes;
        }

        private static byte @Nullable [] utf8(@Nullable String text) {
            return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
        }

        private static int length(byte @Nullable [] field) {
            return field == null ? 0 : field.length;
        }

        private void flush() {
            if (pending == 0) {
                return;
            }
            blocks.add(EventBlock.pack(fields, FIELDS * pending, dataBytes));
            packed += pending;
            counts[group] = packed;
            positions.add(new int[] {group + 1, packed, pending});
            pending = 0;
            dataBytes = 0;
        }

        /** Returns the blocks of all events added. */
        public Blocks finish() {
            flush();
            int[] groups = new int[blocks.size()];
            int[] ends = new int[blocks.size()];
            int[] events = new int[blocks.size()];
            for (int i = 0; i < groups.length; i++) {
                groups[i] = positions.get(i)[0];
                ends[i] = positions.get(i)[1];
                events[i] = positions.get(i)[2];
            }
            return new Blocks(
                    streams, streamIds, partitions, counts, groups, ends, events, blocks.toArray(byte[][]::new));
        }
    }

    /**
     * Appends the batch, or finds the batch of this number that is stored already: see {@link AppendStatement#execute}.
     *
     * @return the base offset of each partition
     */
    public long[] execute(
            Connection connection,
            UUID producer,
            long number,
            MapFence maps,
            @Nullable String incarnation,
            Blocks batch)
            throws SQLException {
        return AppendStatement.append(
                functions,
                connection,
                incarnation,
                batch.streamIds(),
                () -> appendToStream(connection, producer, number, maps, incarnation, batch),
                () -> appendToStreams(connection, producer, number, maps, incarnation, batch));
    }

    private long[] appendToStream(
            Connection connection,
            UUID producer,
            long number,
            MapFence maps,
            @Nullable String incarnation,
            Blocks batch)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        String sql = "SELECT " + functions.name(batch.streamIds()[0]) + ARGUMENTS_TO_STREAM;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            AppendStatement.setBatch(connection, statement, producer, number, maps, incarnation);
            statement.setString(6, batch.streams()[0]);
            statement.setArray(7, pg.createArrayOf("int4", batch.partitions()));
            statement.setArray(8, pg.createArrayOf("int4", batch.counts()));
            statement.setArray(9, pg.createArrayOf("int4", batch.groups()));
            statement.setArray(10, pg.createArrayOf("int4", batch.ends()));
            statement.setArray(11, pg.createArrayOf("int4", batch.events()));
            statement.setArray(12, pg.createArrayOf("bytea", batch.blocks()));
            return AppendStatement.execute(connection, statement);
        }
    }

    private long[] appendToStreams(
            Connection connection,
            UUID producer,
            long number,
            MapFence maps,
            @Nullable String incarnation,
            Blocks batch)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        int before = maps.parameters();
        String sql = maps.precede(schema, append) + CommitWarnings.COLUMN;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            maps.set(connection, statement, producer, number, batch.streamIds(), batch.partitions());
            AppendStatement.setBatch(before, connection, statement, producer, number, maps, incarnation);
            statement.setArray(before + 6, pg.createArrayOf("text", batch.streams()));
            statement.setArray(before + 7, pg.createArrayOf("int4", batch.streamIds()));
            statement.setArray(before + 8, pg.createArrayOf("int4", batch.partitions()));
            statement.setArray(before + 9, pg.createArrayOf("int4", batch.counts()));
            statement.setArray(before + 10, pg.createArrayOf("int4", batch.groups()));
            statement.setArray(before + 11, pg.createArrayOf("int4", batch.ends()));
            statement.setArray(before + 12, pg.createArrayOf("int4", batch.events()));
            statement.setArray(before + 13, pg.createArrayOf("bytea", batch.blocks()));
            return AppendStatement.execute(connection, statement);
        }
    }
}
