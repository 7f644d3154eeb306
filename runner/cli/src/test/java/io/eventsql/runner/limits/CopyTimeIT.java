package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.runner.load.LoadClock;
import org.junit.jupiter.api.Test;

class CopyTimeIT {

    @Test
    void measure_copiesAllEvents() throws Exception {
        try (EventsDb server = EventsDb.start();
                EventSql eventSql = EventSql.builder(server.dataSource()).build()) {
            CopyTime time = CopyTime.measure(eventSql, "ab12cd34", 7_000, LoadClock.SYSTEM);

            assertThat(time.events()).isEqualTo(7_000);
            assertThat(time.durationMs()).isPositive();
            try (var connection = server.dataSource().getConnection();
                    var statement = connection.createStatement();
                    var row = statement.executeQuery(
                            "SELECT count(*), max(event_offset) FROM eventsql.events_copy_ab12cd34")) {
                row.next();
                assertThat(row.getLong(1)).isEqualTo(7_000);
                assertThat(row.getLong(2)).isEqualTo(6_999);
            }
        }
    }
}
