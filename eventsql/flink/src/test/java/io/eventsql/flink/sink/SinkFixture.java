package io.eventsql.flink.sink;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.jspecify.annotations.Nullable;

/** Settings and events of sinks. */
final class SinkFixture {
    private SinkFixture() {}

    static SinkSettings settings(
            List<String> urls,
            String user,
            String password,
            String stream,
            DeliveryGuarantee guarantee,
            Duration failureTimeout) {
        return new SinkSettings(
                urls,
                user,
                password,
                "eventsql",
                stream,
                "sink of " + stream,
                guarantee,
                1_000,
                1_000_000,
                Duration.ofMillis(1),
                Duration.ofSeconds(10),
                failureTimeout);
    }

    static EncodedEvent event(@Nullable String key) {
        return new EncodedEvent(key, "v".getBytes(StandardCharsets.UTF_8), null);
    }
}
