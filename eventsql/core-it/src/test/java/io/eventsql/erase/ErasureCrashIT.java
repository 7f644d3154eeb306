package io.eventsql.erase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Erasure;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.process.ChildProcess;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: an erasure whose process is killed (SIGKILL) anywhere is continued by another process, and ends as if nothing had
 * happened. Method: a Java process erases in small steps and is killed after a random number of them; then this one resumes.
 *
 * <p>{@code -Deventsql.test.eraserKills=N} kills N processes instead of 2.
 */
class ErasureCrashIT extends ErasureFixture {
    private static final int KILLS = Integer.getInteger("eventsql.test.eraserKills", 2);
    private static final int KEYS = 5;
    private static final int EVENTS = 300;
    /** The steps of an erasure of this stream: more than there are offsets / 10. */
    private static final int STEPS_MAX = 55;

    @TempDir
    private Path folder;

    @Test
    void kill_anywhere_anotherProcessContinues() throws Exception {
        Random random = Seeds.random("ErasureCrashIT.kill_anywhere");
        open(2);
        publish(EVENTS, KEYS, random);
        for (int kill = 0; kill < KILLS; kill++) {
            String key = "k" + kill;
            int steps = 1 + random.nextInt(STEPS_MAX);
            try (ChildProcess process = new ChildProcess(folder, ErasureProcess.class, arguments(key))) {
                await().atMost(Duration.ofSeconds(120))
                        .pollInterval(Duration.ofMillis(5))
                        .until(() -> steps(key) >= steps || !process.isAlive());
                process.kill();
                assertThat(steps(key))
                        .as("the steps of a process that wrote: %s", process.errors())
                        .isPositive();
            }
            int before = steps(key);

            UUID id = id(key);
            Erasure erasure = eventSql.resumeErasure(id);

            assertThat(erasure.isDone())
                    .as("after %s steps: %s", before, erasure)
                    .isTrue();
            assertThat(erasure.erasedEvents()).isEqualTo(EVENTS / KEYS);
            assertThat(readAll(stream))
                    .filteredOn(e -> key.equals(e.key()))
                    .hasSize(EVENTS / KEYS)
                    .allMatch(StoredEvent::isErased);
            assertNoFileContains(mark(key));
        }
        assertThat(readAll(stream)).filteredOn(StoredEvent::isErased).hasSize(KILLS * EVENTS / KEYS);
    }

    private List<String> arguments(String key) {
        String urls = cluster.dataSources().stream().map(ErasureCrashIT::url).collect(Collectors.joining(","));
        return List.of(
                urls, TestCluster.server().username(), TestCluster.server().password(), stream, key);
    }

    private static String url(DataSource database) {
        try (Connection connection = database.getConnection()) {
            return connection.getMetaData().getURL();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns how many transactions of the erasure have been committed, as far as the tables show it. */
    private int steps(String key) throws SQLException {
        List<String> counts = new ArrayList<>();
        for (DataSource database : cluster.dataSources()) {
            counts.addAll(Sql.query(
                    database,
                    "SELECT count(*) * 2 + coalesce(sum(array_position(ARRAY['outbox', 'transfer', 'refused', 'sending',"
                            + " 'files', 'done'], phase) + rewritten), 0) FROM eventsql.outbox_erasure WHERE key = ?",
                    key));
            counts.addAll(Sql.query(
                    database,
                    "SELECT coalesce(sum(array_position(ARRAY['outboxes', 'events', 'copies', 'files', 'done'], phase)"
                            + " + scanned / 10), 0) FROM eventsql.erasure WHERE key = ?",
                    key));
        }
        return counts.stream().mapToInt(Integer::parseInt).sum();
    }

    private UUID id(String key) {
        return eventSql.erasures().stream()
                .filter(erasure -> erasure.key().equals(key))
                .findFirst()
                .orElseThrow()
                .id();
    }
}
