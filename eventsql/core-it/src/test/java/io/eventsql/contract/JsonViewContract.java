package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** The view of JSON streams. */
abstract class JsonViewContract extends Contract {
    JsonViewContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void jsonView_jsonValues_areReadAsJsonbAndOthersAsNull() throws SQLException {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).asJson());
        List<String> values = List.of(
                "{\"id\": 7, \"name\": \"K\u00e4se\"}",
                "not json",
                "",
                "{\"nul\": \"\\u0000\"}",
                "{\"huge\": 1e999999}",
                "[".repeat(100_000),
                "[".repeat(20_000) + "]".repeat(20_000),
                "{\"id\": 8}");
        List<EventPosition> positions = new ArrayList<>();
        for (String value : values) {
            positions.add(publisher.publish(stream, Event.ofText("k", value)));
        }
        positions.add(publisher.publish(stream, Event.of("k", new byte[] {(byte) 0xff, (byte) 0xfe})));
        DataSource database = database(positions.getFirst().shard());
        String view = " FROM eventsql.events_" + stream + "__json ";
        assertThat(Sql.query(database, "SELECT value ->> 'id'" + view + "ORDER BY event_offset"))
                .containsExactly("7", null, null, null, null, null, null, "8", null);
        assertThat(Sql.query(database, "SELECT event_offset" + view + "WHERE value @> '{\"name\": \"K\u00e4se\"}'"))
                .containsExactly("0");
        assertThat(Sql.query(database, "SELECT key" + view + "WHERE value IS NULL"))
                .hasSizeGreaterThan(4)
                .containsOnly("k");
    }

    @Test
    void jsonView_streamIsNotJson_doesNotExist() throws SQLException {
        String stream = newStream();
        assertThat(cluster.sum("SELECT count(*) FROM pg_views WHERE viewname = 'events_" + stream + "__json'"))
                .isZero();
    }
}
