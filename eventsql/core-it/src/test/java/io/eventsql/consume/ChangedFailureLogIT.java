package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.SwitchableDataSource;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: what fails for another reason than before is logged again, as when a database is back and refuses what it is asked, and so is
 * that it works again.
 */
@Timeout(120)
class ChangedFailureLogIT extends ConsumerFixture {
    private SwitchableDataSource database;
    private EventSql process;
    private CapturedLog consuming;
    private CapturedLog waking;

    @BeforeEach
    void openProcess() {
        consuming = CapturedLog.ofConsuming();
        waking = CapturedLog.ofWaking();
        database = new SwitchableDataSource(cluster.dataSources().getFirst());
        process = EventSql.builder(database)
                .settings(Settings.builder().heartbeat(Duration.ofMillis(500)).build())
                .build();
    }

    @AfterEach
    void closeProcess() {
        database.setAvailable(true);
        process.close();
        consuming.close();
        waking.close();
    }

    private void terminateConnections() throws SQLException {
        cluster.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                + " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }

    @Test
    void heartbeatsAndListening_reasonChanges_eachIsLogged() throws Exception {
        String stream = newStream(1);
        Handled handled = new Handled();
        process.subscribe(consumer(stream), handled::add);
        publish(stream, 0, 1, 1);
        handled.awaitSize(1);

        database.setUnavailable("the first reason");
        terminateConnections();
        consuming.awaitLine("WARN Heartbeat on", "the first reason");
        waking.awaitLine("WARN Listening on", "the first reason");
        database.setUnavailable("the second reason");
        consuming.awaitLine("WARN Heartbeat on", "the second reason");
        waking.awaitLine("WARN Listening on", "the second reason");
        database.setAvailable(true);

        consuming.awaitLine("INFO Heartbeats on", "work again");
        waking.awaitLine("INFO Listening on", "works again");
        for (String reason : List.of("the first reason", "the second reason")) {
            assertThat(consuming.lines("Heartbeat on").stream().filter(line -> line.contains(reason)))
                    .hasSize(1);
        }
    }

    @Test
    void join_reasonChanges_eachIsLoggedAndThatItHasJoined() {
        String stream = newStream(1);
        Handled handled = new Handled();
        process.publisher().publish(stream, Event.ofText("key", "0")); // knows the stream now

        database.setUnavailable("the first reason");
        process.subscribe(consumer(stream), handled::add);
        consuming.awaitLine("WARN Consumer c failed to join", "the first reason");
        database.setUnavailable("the second reason");
        consuming.awaitLine("WARN Consumer c failed to join", "the second reason");
        database.setAvailable(true);

        consuming.awaitLine("INFO Consumer c has joined", "failed attempts");
        handled.awaitSize(1);
        assertThat(consuming.lines("failed to join")).hasSize(2);
    }
}
