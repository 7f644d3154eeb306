package io.eventsql.runner.drivers.redis;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.params.XAddParams;

/** Adds the events of a call to a stream with one pipelined command each. Thread-safe. */
final class RedisAppend {
    static final byte[] KEY = {'k'};
    static final byte[] VALUE = {'v'};

    private final RedisClient client;
    private final byte[] stream;

    RedisAppend(RedisClient client, String stream) {
        this.client = client;
        this.stream = stream.getBytes(UTF_8);
    }

    void append(List<Event> events) {
        if (events.size() == 1) {
            client.xadd(stream, XAddParams.xAddParams(), fields(events.getFirst()));
            return;
        }
        try (Pipeline pipeline = client.pipelined()) {
            List<Response<byte[]>> answers = events.stream()
                    .map(event -> pipeline.xadd(stream, XAddParams.xAddParams(), fields(event)))
                    .toList();
            pipeline.sync();
            answers.forEach(Response::get);
        }
    }

    private static Map<byte[], byte[]> fields(Event event) {
        String key = event.key();
        return key == null ? Map.of(VALUE, event.value()) : Map.of(KEY, key.getBytes(UTF_8), VALUE, event.value());
    }
}
