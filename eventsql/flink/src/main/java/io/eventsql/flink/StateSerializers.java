package io.eventsql.flink;

import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** The form of splits and of the enumerator's state in checkpoints. A change of it gets another version. */
final class StateSerializers {
    private static final int VERSION = 1;
    private static final int INITIAL_BYTES = 128;

    private StateSerializers() {}

    static final class OfSplit implements SimpleVersionedSerializer<PartitionSplit> {
        @Override
        public int getVersion() {
            return VERSION;
        }

        @Override
        public byte[] serialize(PartitionSplit split) throws IOException {
            DataOutputSerializer out = new DataOutputSerializer(INITIAL_BYTES);
            write(split, out);
            return out.getCopyOfBuffer();
        }

        @Override
        public PartitionSplit deserialize(int version, byte[] bytes) throws IOException {
            requireVersion(version);
            return readSplit(new DataInputDeserializer(bytes));
        }
    }

    static final class OfEnumerator implements SimpleVersionedSerializer<EnumeratorState> {
        @Override
        public int getVersion() {
            return VERSION;
        }

        @Override
        public byte[] serialize(EnumeratorState state) throws IOException {
            DataOutputSerializer out = new DataOutputSerializer(INITIAL_BYTES);
            out.writeBoolean(state.isInitialised());
            out.writeInt(state.known().size());
            for (StreamPartition partition : state.known()) {
                write(partition, out);
            }
            out.writeInt(state.unassigned().size());
            for (PartitionSplit split : state.unassigned()) {
                write(split, out);
            }
            return out.getCopyOfBuffer();
        }

        @Override
        public EnumeratorState deserialize(int version, byte[] bytes) throws IOException {
            requireVersion(version);
            DataInputDeserializer in = new DataInputDeserializer(bytes);
            boolean isInitialised = in.readBoolean();
            Set<StreamPartition> known = new HashSet<>();
            for (int left = in.readInt(); left > 0; left--) {
                known.add(readPartition(in));
            }
            List<PartitionSplit> unassigned = new ArrayList<>();
            for (int left = in.readInt(); left > 0; left--) {
                unassigned.add(readSplit(in));
            }
            return new EnumeratorState(isInitialised, known, unassigned);
        }
    }

    private static void requireVersion(int version) throws IOException {
        if (version != VERSION) {
            throw new IOException("The state has version " + version + ", which a later release has written");
        }
    }

    private static void write(StreamPartition partition, DataOutputSerializer out) throws IOException {
        out.writeUTF(partition.stream());
        out.writeInt(partition.shard());
        out.writeInt(partition.partition());
    }

    private static StreamPartition readPartition(DataInputDeserializer in) throws IOException {
        return new StreamPartition(in.readUTF(), in.readInt(), in.readInt());
    }

    private static void write(PartitionSplit split, DataOutputSerializer out) throws IOException {
        write(split.partition(), out);
        ReadPosition position = split.position();
        out.writeLong(position.offset());
        String incarnation = position.incarnation();
        out.writeBoolean(incarnation != null);
        if (incarnation != null) {
            out.writeUTF(incarnation);
        }
        out.writeLong(position.lastOffset());
        Instant time = position.lastPublishedAt();
        out.writeBoolean(time != null);
        if (time != null) {
            out.writeLong(time.getEpochSecond());
            out.writeInt(time.getNano());
        }
        out.writeLong(split.endOffset());
    }

    private static PartitionSplit readSplit(DataInputDeserializer in) throws IOException {
        StreamPartition partition = readPartition(in);
        long offset = in.readLong();
        String incarnation = in.readBoolean() ? in.readUTF() : null;
        long lastOffset = in.readLong();
        Instant time = in.readBoolean() ? Instant.ofEpochSecond(in.readLong(), in.readInt()) : null;
        return new PartitionSplit(partition, new ReadPosition(offset, incarnation, lastOffset, time), in.readLong());
    }
}
