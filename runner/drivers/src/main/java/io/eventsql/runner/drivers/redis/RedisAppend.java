package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.params.XAddParams;

/** Adds events to a stream with one pipelined command each. Thread-safe. */
final class RedisAppend {
    static final byte[] KEY = {'k'};
    static final byte[] VALUE = {'v'};
    private static final XAddParams NEXT_ID = XAddParams.xAddParams();

    private final RedisClient client;
    private final byte[] stream;

    RedisAppend(RedisClient client, String stream) {
        this.client = client;
        this.stream = stream.getBytes(UTF_8);
    }

    /** Returns when the events are stored. */
    void append(List<Event> events) {
        if (events.size() == 1) {
            client.xadd(stream, NEXT_ID, fields(events.getFirst()));
            return;
        }
        try (Pipeline pipeline = client.pipelined()) {
            List<Response<byte[]>> answers = new ArrayList<>(events.size());
            for (Event event : events) {
                answers.add(pipeline.xadd(stream, NEXT_ID, fields(event)));
            }
            pipeline.sync();
            answers.forEach(Response::get);
        }
    }

    private static Map<byte[], byte[]> fields(Event event) {
        String key = event.key();
        return key == null ? Map.of(VALUE, event.value()) : Map.of(KEY, key.getBytes(UTF_8), VALUE, event.value());
    }
}
