package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ClearCommandIT {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void clear_previewsThenDeletesThenRejectsTheSameConfirmation() {
        try (EventsDb server = EventsDb.start();
                EventSql eventSql = EventSql.builder(server.dataSource()).build()) {
            eventSql.createStream(StreamSpec.of("orders").withPartitions(1));
            eventSql.publisher().publishAll("orders", List.of(Event.ofText("a"), Event.ofText("b")));

            assertThat(run(server, "clear", "orders")).isZero();
            assertThat(out.toString())
                    .contains("Stream orders holds 2 events:")
                    .contains("shard 0: 2 events in 1 segments");
            Matcher confirmation = Pattern.compile("--confirm ([0-9a-f]+)").matcher(out.toString());
            assertThat(confirmation.find()).isTrue();
            assertThat(eventSql.previewClear("orders").events()).isEqualTo(2);

            assertThat(run(server, "clear", "orders", "--confirm", confirmation.group(1)))
                    .isZero();
            assertThat(out.toString()).contains("Deleted 2 events of stream orders");
            assertThat(eventSql.previewClear("orders").events()).isZero();

            assertThat(run(server, "clear", "orders", "--confirm", confirmation.group(1)))
                    .isEqualTo(2);
            assertThat(err.toString()).contains("confirmation does not match the current content of stream orders");
            assertThat(run(server, "clear", "nothing")).isEqualTo(2);
            assertThat(err.toString()).contains("nothing");
        }
    }

    private int run(EventsDb server, String... arguments) {
        return Runner.commandLine(Map.of(
                        "DB_URLS", server.jdbcUrl(), "DB_USER", server.username(), "DB_PASSWORD", server.password()))
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments);
    }
}
