package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.Target;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.jspecify.annotations.Nullable;

/** The form of batches in checkpoints. A change of it gets another version. */
final class BatchSerializer implements SimpleVersionedSerializer<EventBatch> {
    private static final int VERSION = 1;
    private static final int INITIAL_BYTES = 1_024;
    private static final int NULL = -1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(EventBatch batch) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(INITIAL_BYTES);
        out.writeLong(batch.producer().getMostSignificantBits());
        out.writeLong(batch.producer().getLeastSignificantBits());
        out.writeLong(batch.number());
        out.writeUTF(batch.stream());
        out.writeInt(batch.target().shard());
        out.writeInt(batch.target().partition());
        out.writeInt(batch.mapVersion());
        out.writeInt(batch.events().size());
        for (EncodedEvent event : batch.events()) {
            write(text(event.key()), out);
            write(event.value(), out);
            write(text(event.headers()), out);
        }
        return out.getCopyOfBuffer();
    }

    @Override
    public EventBatch deserialize(int version, byte[] bytes) throws IOException {
        if (version != VERSION) {
            throw new IOException("The state has version " + version + ", which a later release has written");
        }
        DataInputDeserializer in = new DataInputDeserializer(bytes);
        UUID producer = new UUID(in.readLong(), in.readLong());
        long number = in.readLong();
        String stream = in.readUTF();
        Target target = new Target(in.readInt(), in.readInt());
        int mapVersion = in.readInt();
        int size = in.readInt();
        List<EncodedEvent> events = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            events.add(new EncodedEvent(text(read(in)), read(in), text(read(in))));
        }
        return new EventBatch(producer, number, stream, target, mapVersion, events);
    }

    private static byte @Nullable [] text(@Nullable String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static @Nullable String text(byte @Nullable [] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private static void write(byte @Nullable [] bytes, DataOutputSerializer out) throws IOException {
        out.writeInt(bytes == null ? NULL : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }

    private static byte @Nullable [] read(DataInputDeserializer in) throws IOException {
        int length = in.readInt();
        if (length == NULL) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }
}
