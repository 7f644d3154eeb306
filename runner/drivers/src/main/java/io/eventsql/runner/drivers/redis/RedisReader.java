package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.runner.driver.PollingConsumer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.StreamEntryBinary;

/**
 * The only member of a consumer group, which acknowledges each page after its delivery; or a reader that stores the id of
 * the last entry delivered, at most every 50 ms, which costs the server less: it keeps no list of what is pending. For use by one
 * thread.
 */
final class RedisReader {
    private static final int BLOCK_MS = 100;
    private static final long STORE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final byte[] MEMBER = {'m'};

    private final RedisClient client;
    private final byte[] stream;
    private final byte[] group;
    private final int pageEvents;
    /** The key of the last id; {@code null} with a group. */
    private final byte @Nullable [] positionKey;

    private StreamEntryID delivered = new StreamEntryID(0, 0);
    private StreamEntryID stored = delivered;
    private long storedAt = System.nanoTime();

    /** Creates the group at the first event, or reads where its reader was. */
    RedisReader(RedisClient client, String stream, String group, RedisSettings settings) {
        this.client = client;
        this.stream = stream.getBytes(UTF_8);
        this.group = group.getBytes(UTF_8);
        this.pageEvents = settings.pageEvents();
        if (settings.storesPosition()) {
            this.positionKey = (stream + ":" + group).getBytes(UTF_8);
            byte[] position = client.get(positionKey);
            if (position != null) {
                this.delivered = new StreamEntryID(position);
                this.stored = delivered;
            }
        } else {
            this.positionKey = null;
            client.xgroupCreate(stream, group, new StreamEntryID(0, 0), true);
        }
    }

    /** Starts to read. */
    PollingConsumer start(String name, Consumer<List<StreamEntryBinary>> listener, Consumer<Throwable> failed) {
        return PollingConsumer.start(
                "redis-" + name,
                () -> {
                    @Nullable List<Map.Entry<byte[], List<StreamEntryBinary>>> streams = readPage();
                    if (streams != null) {
                        streams.forEach(read -> deliver(read.getValue(), listener));
                    }
                    if (positionKey != null) {
                        storePosition(positionKey);
                    }
                    return 0;
                },
                failed);
    }

    private @Nullable List<Map.Entry<byte[], List<StreamEntryBinary>>> readPage() {
        if (positionKey != null) {
            XReadParams page = XReadParams.xReadParams().count(pageEvents).block(BLOCK_MS);
            return client.xreadBinary(page, Map.of(stream, delivered));
        }
        XReadGroupParams page =
                XReadGroupParams.xReadGroupParams().count(pageEvents).block(BLOCK_MS);
        return client.xreadGroupBinary(group, MEMBER, page, Map.of(stream, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
    }

    private void deliver(List<StreamEntryBinary> entries, Consumer<List<StreamEntryBinary>> listener) {
        if (entries.isEmpty()) {
            return;
        }
        listener.accept(entries);
        delivered = entries.getLast().getID();
        if (positionKey == null) {
            byte[][] ids = new byte[entries.size()][];
            for (int i = 0; i < ids.length; i++) {
                ids[i] = entries.get(i).getID().toString().getBytes(UTF_8);
            }
            client.xack(stream, group, ids);
        }
    }

    private void storePosition(byte[] key) {
        long now = System.nanoTime();
        if (now - storedAt >= STORE_NANOS && !delivered.equals(stored)) {
            client.set(key, delivered.toString().getBytes(UTF_8));
            stored = delivered;
            storedAt = now;
        }
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
