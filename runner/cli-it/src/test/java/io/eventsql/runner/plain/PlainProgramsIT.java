package io.eventsql.runner.plain;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.testing.TestDatabase;
import java.sql.SQLException;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** What the programs write: the rows that the library writes. */
class PlainProgramsIT {
    @AutoClose
    private static final TestDatabase DATABASE = TestDatabase.create();

    @Test
    void copy_twoConnections_fillAPartitionEach() throws Exception {
        PlainProgram.Rates rates = new CopyProgram().run(settings(Map.of()), CopyProgram.load(2, 0.1));

        assertThat(rates.publishRate()).isPositive();
        String stream = stream("copy_%", 2);
        for (int partition = 0; partition < 2; partition++) {
            assertRows(stream, partition);
        }
        assertThat(query("SELECT count(*) %% %d FROM eventsql.events_%s"
                        .formatted(CopyProgram.EVENTS_PER_COMMIT, stream)))
                .isEqualTo("0");
    }

    @Test
    void copyDuration_copiesAllEvents() throws Exception {
        assertThat(CopyProgram.durationMs(settings(Map.of()), 7_000)).isPositive();

        String stream = stream("copy_%", 1);
        assertRows(stream, 0);
        assertThat(query("SELECT count(*) FROM eventsql.events_" + stream)).isEqualTo("7000");
    }

    @Test
    void groupCommit_consumesWhatItsCallersPublish() throws Exception {
        PlainProgram.Rates rates = new GroupCommitProgram()
                .run(settings(Map.of("connections", "2")), new PlainProgram.Load(10, false, 3, 0, 0.2));

        assertThat(rates.consumeRate()).isPositive().isLessThanOrEqualTo(rates.publishRate());
        String stream = stream("group_commit_%", 2);
        for (int partition = 0; partition < 2; partition++) {
            assertRows(stream, partition);
        }
        assertThat(query("SELECT count(*) % 3 FROM eventsql.events_" + stream)).isEqualTo("0");
        assertThat(query("SELECT bool_and(o.next_offset = h.next_offset) FROM " + stream + "_head h JOIN " + stream
                        + "_offset o USING (partition)"))
                .isEqualTo("t");
    }

    private static DriverSettings settings(Map<String, String> options) {
        return new DriverSettings(options, DATABASE.environment());
    }

    private static String stream(String like, int partitions) throws SQLException {
        return query("SELECT name FROM eventsql.stream WHERE name LIKE '" + like + "' AND partitions = " + partitions);
    }

    private static void assertRows(String stream, int partition) throws SQLException {
        assertThat(query("SELECT count(*) > 0 AND count(*) = max(event_offset) + 1 AND min(event_offset) = 0"
                        + " AND bool_and(key IS NULL AND headers IS NULL"
                        + " AND published_at BETWEEN now() - interval '5 min' AND now()"
                        + " AND (convert_from(value, 'UTF8')::json) IS NOT NULL)"
                        + " FROM eventsql.events_" + stream + " WHERE partition = " + partition))
                .as("%s, partition %s", stream, partition)
                .isEqualTo("t");
    }

    private static String query(String sql) throws SQLException {
        try (var connection = DATABASE.dataSource().getConnection();
                var statement = connection.createStatement();
                var row = statement.executeQuery(sql)) {
            row.next();
            return row.getString(1);
        }
    }
}
