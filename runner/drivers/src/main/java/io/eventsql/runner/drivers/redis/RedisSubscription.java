package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntryBinary;

/** The only member of a consumer group, with its own thread. Acknowledges each page after its delivery. */
final class RedisSubscription implements AutoCloseable {
    private static final int PAGE_EVENTS = 1_000;
    private static final int BLOCK_MS = 100;
    private static final byte[] MEMBER = {'m'};

    private final RedisClient client;
    private final byte[] stream;
    private final byte[] group;
    private final DeliveryListener listener;
    private final Thread thread;
    private volatile boolean closing;

    /** Creates the group at the first event and starts consuming. */
    RedisSubscription(RedisClient client, String stream, String group, DeliveryListener listener) {
        this.client = client;
        this.stream = stream.getBytes(UTF_8);
        this.group = group.getBytes(UTF_8);
        this.listener = listener;
        client.xgroupCreate(stream, group, new StreamEntryID(0, 0), true);
        this.thread = Thread.ofPlatform().name("redis-" + stream + "-" + group).start(this::consume);
    }

    private void consume() {
        XReadGroupParams page =
                XReadGroupParams.xReadGroupParams().count(PAGE_EVENTS).block(BLOCK_MS);
        Map<byte[], StreamEntryID> unread = Map.of(stream, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY);
        try {
            while (!closing) {
                @Nullable
                List<Map.Entry<byte[], List<StreamEntryBinary>>> streams =
                        client.xreadGroupBinary(group, MEMBER, page, unread);
                if (streams != null) {
                    streams.forEach(read -> deliver(read.getValue()));
                }
            }
        } catch (RuntimeException e) {
            listener.failed(e);
        }
    }

    private void deliver(List<StreamEntryBinary> entries) {
        if (entries.isEmpty()) {
            return;
        }
        listener.delivered(entries.stream().map(RedisSubscription::event).toList());
        client.xack(
                stream,
                group,
                entries.stream()
                        .map(entry -> entry.getID().toString().getBytes(UTF_8))
                        .toArray(byte[][]::new));
    }

    /** Iterates over the fields, because byte arrays cannot be looked up in the map. */
    private static Event event(StreamEntryBinary entry) {
        byte[] value = {};
        @Nullable String key = null;
        for (Map.Entry<byte[], byte[]> field : entry.getFields().entrySet()) {
            if (Arrays.equals(field.getKey(), RedisAppend.VALUE)) {
                value = field.getValue();
            } else {
                key = new String(field.getValue(), UTF_8);
            }
        }
        return new Event(key, value, Map.of());
    }

    @Override
    public void close() {
        closing = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
