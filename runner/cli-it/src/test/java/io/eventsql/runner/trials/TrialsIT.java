package io.eventsql.runner.trials;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.drivers.EventSqlOutboxDriverProvider;
import io.eventsql.runner.drivers.OutboxTableDriverProvider;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.testing.TestDatabase;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs trials with real drivers, and checks that the stream contains only the events of the last trial. */
@Timeout(120)
class TrialsIT {
    @AutoClose
    private static final TestDatabase DATABASE = TestDatabase.create();

    private final List<String> progress = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();

    @Test
    void blast_eventSqlOutbox_keepsOnlyTheLastTrial() throws Exception {
        List<BlastTrial> blast;
        try (Driver driver = open(new EventSqlOutboxDriverProvider())) {
            blast = trials(driver, "0b1a57ed").blast(new RunSpec.BlastSpec(300, 3, 1 << 30), 500);
            // Published events are not relayed yet. Clearing waits for the relay.
            driver.clear("blast_0b1a57ed");
        }

        assertThat(problems).isEmpty();
        assertThat(blast).extracting(BlastTrial::events).containsExactly(300L, 300L, 300L);
        assertThat(progress).hasSize(3);
        assertThat(count("eventsql.events_blast_0b1a57ed")).isZero();
    }

    @Test
    void sweep_outboxTable_keepsOnlyTheLastTrial() throws Exception {
        List<SweepTrial> sweep;
        try (Driver driver = open(new OutboxTableDriverProvider())) {
            sweep = trials(driver, "5eed0001")
                    .sweep(
                            new RunSpec.SweepSpec(List.of(1, 500), 2, 10_240, false),
                            0,
                            new RunSpec.EnvironmentSpec("postgres", 1, "none", Map.of()));
        }

        assertThat(problems).isEmpty();
        assertThat(sweep).extracting(SweepTrial::eventCount).containsExactly(1, 1, 500, 500);
        assertThat(sweep).extracting(SweepTrial::eventType).containsOnly("account_created");
        assertThat(sweep).allMatch(trial -> trial.durationMs() > 0);
        assertThat(count("outbox_of_sweep_5eed0001")).isEqualTo(500);
    }

    private Trials trials(Driver driver, String run) {
        return new Trials(new Trials.TrialContext(
                driver, run, 3, LoadClock.SYSTEM, new StopSignal(), problems::add, progress::add));
    }

    private static Driver open(DriverProvider provider) throws Exception {
        return provider.open(new DriverSettings(Map.of(), DATABASE.environment()));
    }

    private static long count(String table) throws SQLException {
        try (var connection = DATABASE.dataSource().getConnection();
                var statement = connection.createStatement();
                var row = statement.executeQuery("SELECT count(*) FROM " + table)) {
            row.next();
            return row.getLong(1);
        }
    }
}
