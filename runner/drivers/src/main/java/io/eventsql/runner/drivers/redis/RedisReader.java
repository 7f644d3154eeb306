package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.runner.driver.PollingConsumer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntryBinary;

/** The only member of a consumer group. Acknowledges each page after its delivery. */
final class RedisReader {
    private static final int BLOCK_MS = 100;
    private static final byte[] MEMBER = {'m'};

    private final RedisClient client;
    private final byte[] stream;
    private final byte[] group;
    private final int pageEvents;

    /** Creates the group at the first event. */
    RedisReader(RedisClient client, String stream, String group, int pageEvents) {
        this.client = client;
        this.stream = stream.getBytes(UTF_8);
        this.group = group.getBytes(UTF_8);
        this.pageEvents = pageEvents;
        client.xgroupCreate(stream, group, new StreamEntryID(0, 0), true);
    }

    /** Starts to read. */
    PollingConsumer start(String name, Consumer<List<StreamEntryBinary>> listener, Consumer<Throwable> failed) {
        XReadGroupParams page =
                XReadGroupParams.xReadGroupParams().count(pageEvents).block(BLOCK_MS);
        Map<byte[], StreamEntryID> unread = Map.of(stream, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY);
        return PollingConsumer.start(
                "redis-" + name,
                () -> {
                    @Nullable
                    List<Map.Entry<byte[], List<StreamEntryBinary>>> streams =
                            client.xreadGroupBinary(group, MEMBER, page, unread);
                    if (streams != null) {
                        streams.forEach(read -> deliver(read.getValue(), listener));
                    }
                    return 0;
                },
                failed);
    }

    private void deliver(List<StreamEntryBinary> entries, Consumer<List<StreamEntryBinary>> listener) {
        if (entries.isEmpty()) {
            return;
        }
        listener.accept(entries);
        byte[][] ids = new byte[entries.size()][];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = entries.get(i).getID().toString().getBytes(UTF_8);
        }
        client.xack(stream, group, ids);
    }

    /** Returns an entry's key; {@code null} if it has none. */
    static @Nullable String key(StreamEntryBinary entry) {
        byte[] key = field(entry, RedisAppend.KEY);
        return key == null ? null : new String(key, UTF_8);
    }

    /** Returns an entry's value. */
    static byte[] value(StreamEntryBinary entry) {
        byte[] value = field(entry, RedisAppend.VALUE);
        return value == null ? new byte[0] : value;
    }

    /** Iterates over the fields, because byte arrays cannot be looked up in the map. */
    private static byte @Nullable [] field(StreamEntryBinary entry, byte[] name) {
        for (Map.Entry<byte[], byte[]> field : entry.getFields().entrySet()) {
            if (Arrays.equals(field.getKey(), name)) {
                return field.getValue();
            }
        }
        return null;
    }
}
