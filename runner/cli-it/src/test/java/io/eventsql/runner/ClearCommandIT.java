package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.runner.testing.TestDatabase;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.sql.SQLException;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ClearCommandIT {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void clear_previewsThenDeletesThenRejectsTheSameConfirmation() throws SQLException {
        try (TestDatabase database = TestDatabase.create();
                EventSql eventSql = EventSql.builder(database.dataSource()).build()) {
            eventSql.createStream(StreamSpec.of("orders").withPartitions(1));
            eventSql.publisher().publishAll("orders", List.of(Event.ofText("a"), Event.ofText("b")));

            assertThat(run(database, "clear", "orders")).isZero();
            assertThat(out.toString())
                    .contains("Stream orders holds 2 events:")
                    .contains("shard 0: 2 events in 1 segments");
            Matcher confirmation = Pattern.compile("--confirm ([0-9a-f]+)").matcher(out.toString());
            assertThat(confirmation.find()).isTrue();
            assertThat(eventSql.previewClear("orders").events()).isEqualTo(2);

            assertThat(run(database, "clear", "orders", "--confirm", confirmation.group(1)))
                    .isZero();
            assertThat(out.toString()).contains("Deleted 2 events of stream orders");
            assertThat(eventSql.previewClear("orders").events()).isZero();

            assertThat(run(database, "clear", "orders", "--confirm", confirmation.group(1)))
                    .isEqualTo(2);
            assertThat(err.toString()).contains("confirmation does not match the current content of stream orders");
            assertThat(run(database, "clear", "nothing")).isEqualTo(2);
            assertThat(err.toString()).contains("nothing");
        }
    }

    private int run(TestDatabase database, String... arguments) {
        return Runner.commandLine(database.environment())
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments);
    }
}
