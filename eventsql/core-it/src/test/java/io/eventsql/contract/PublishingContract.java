package io.eventsql.contract;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A published event is stored unchanged. */
abstract class PublishingContract extends Contract {
    PublishingContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void publish_event_readsBackEqual() {
        String stream = newStream();
        Event event = Event.ofText("customer-1", "hello")
                .withHeader("type", "greeting")
                .withHeader("v", "2");
        Instant before = Instant.now().minusSeconds(60);
        EventPosition position = publisher.publish(stream, event);
        StoredEvent stored = readOne(position);
        assertThat(stored.position()).isEqualTo(position);
        assertThat(stored.key()).isEqualTo("customer-1");
        assertThat(stored.value()).isEqualTo("hello".getBytes(UTF_8));
        assertThat(stored.headers()).isEqualTo(event.headers());
        assertThat(stored.publishedAt()).isBetween(before, Instant.now().plusSeconds(60));
    }

    @Test
    void publish_withoutKeyAndHeaders_readsBackWithout() {
        StoredEvent stored = readOne(publisher.publish(newStream(), Event.ofText("x")));
        assertThat(stored.key()).isNull();
        assertThat(stored.headers()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                " ",
                "NULL",
                "{}",
                "\"'\\/;--",
                "{\"a\":[1,\"}\"]}",
                "tab\tnewline\ncarriage\r",
                "\u0001\u001f\u007f\u0085",
                "\u00e4\u00df\u0416\u4e2d\u6587\u0627\u0644",
                "\ud83d\ude00\ud83c\udff3\ufe0f\u200d\ud83c\udf08",
                "e\u0301 is not \u00e9",
                "\u200b\u202e\ufeff\ufffe\uffff",
            })
    void publish_unusualText_readsBackEqual(String text) {
        String stream = newStreamOnce("odd_texts");
        Event event = new Event(text, text.getBytes(UTF_8), Map.of(text, text, "plain", "x"));
        StoredEvent stored = readOne(publisher.publish(stream, event));
        assertThat(stored.key()).isEqualTo(text);
        assertThat(stored.text()).isEqualTo(text);
        assertThat(stored.headers()).isEqualTo(event.headers());
    }

    private String newStreamOnce(String name) {
        return newStream(StreamSpec.of(name).withPartitions(PARTITIONS));
    }

    @Test
    void publish_anyBytes_readBackEqual() {
        String stream = newStream();
        byte[] every = new byte[256];
        for (int i = 0; i < every.length; i++) {
            every[i] = (byte) i;
        }
        byte[] large = new byte[1 << 20];
        new Random(seed).nextBytes(large);
        for (byte[] value : List.of(new byte[0], new byte[] {0}, every, large)) {
            assertThat(readOne(publisher.publish(stream, Event.of("k", value))).value())
                    .as("seed %d", seed)
                    .isEqualTo(value);
        }
    }

    @Test
    void publish_headers_areQueryableByJsonOperators() throws SQLException {
        String stream = newStream();
        String odd = "a\"b\\c\n\t\u0001 \u00e4 \ud83d\ude00";
        EventPosition position = publisher.publish(
                stream, Event.ofText("x").withHeader("type", "order").withHeader(odd, odd));
        String where = " FROM eventsql.events_" + stream + " WHERE partition = " + position.partition()
                + " AND event_offset = " + position.offset();
        DataSource database = database(position.shard());
        assertThat(Sql.query(database, "SELECT headers ->> 'type'" + where)).containsExactly("order");
        assertThat(Sql.query(database, "SELECT headers ->> ?" + where, odd)).containsExactly(odd);
        assertThat(Sql.query(database, "SELECT headers::jsonb ->> ?" + where, odd))
                .containsExactly(odd);
    }

    @Test
    void publishAll_noEvents_returnsNoPositions() {
        assertThat(publisher.publishAll(newStream(), List.of())).isEmpty();
    }
}
