package io.eventsql.eventsdb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(180)
class StandbysIT {
    private static final long POLL_NANOS = Duration.ofMillis(10).toNanos();

    private static final String WAITING =
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND state = 'active'";

    private static EmbeddedEventsDb.Builder small(StandbyMode standbys) {
        return EmbeddedEventsDb.builder().setting("shared_buffers", "32MB").standbys(standbys);
    }

    @Test
    void synchronous_commitIsOnTheStandby_andWaitsForIt() throws Exception {
        try (var db = small(StandbyMode.SYNCHRONOUS).start();
                var threads = Executors.newSingleThreadExecutor()) {
            assertThat(db.show("synchronous_standby_names")).isEqualTo("FIRST 1 (standby1)");
            EmbeddedStandby standby = db.standbys().getFirst();
            execute(db.dataSource(), "CREATE TABLE t (x int)");
            execute(db.dataSource(), "INSERT INTO t VALUES (1)");
            // Flushed when the commit returns, replayed shortly after.
            awaitTrue(standby.adminDataSource(), "SELECT to_regclass('t') IS NOT NULL");
            awaitTrue(standby.adminDataSource(), "SELECT count(*) = 1 FROM t");
            assertThatThrownBy(() -> execute(standby.adminDataSource(), "INSERT INTO t VALUES (2)"))
                    .hasMessageContaining("read-only");

            standby.stop();
            CompletableFuture<Void> commit = CompletableFuture.runAsync(
                    () -> {
                        try {
                            execute(db.dataSource(), "INSERT INTO t VALUES (3)");
                        } catch (SQLException e) {
                            throw new IllegalStateException(e);
                        }
                    },
                    threads);
            awaitTrue(db.adminDataSource(), WAITING);
            assertThat(commit).isNotDone();

            standby.restart();
            commit.get();
            awaitTrue(standby.adminDataSource(), "SELECT count(*) = 2 FROM t");
        }
    }

    @Test
    void asynchronous_stoppedStandby_doesNotHoldCommitsUp() throws Exception {
        try (var db = small(StandbyMode.ASYNCHRONOUS).start()) {
            EmbeddedStandby standby = db.standbys().getFirst();
            standby.stop();
            execute(db.dataSource(), "CREATE TABLE t (x int)");
            execute(db.dataSource(), "INSERT INTO t VALUES (1)");

            standby.restart();
            awaitTrue(standby.adminDataSource(), "SELECT to_regclass('t') IS NOT NULL");
            awaitTrue(standby.adminDataSource(), "SELECT count(*) = 1 FROM t");
        }
    }

    @Test
    void quorum_oneOfTwoIsEnough_noneIsNot() throws Exception {
        try (var db = small(StandbyMode.QUORUM).start();
                var threads = Executors.newSingleThreadExecutor()) {
            assertThat(db.show("synchronous_standby_names")).isEqualTo("ANY 1 (standby1, standby2)");
            execute(db.dataSource(), "CREATE TABLE t (x int)");
            db.standbys().getFirst().stop();
            execute(db.dataSource(), "INSERT INTO t VALUES (1)");
            awaitTrue(db.standbys().get(1).adminDataSource(), "SELECT count(*) = 1 FROM t");

            db.standbys().get(1).stop();
            CompletableFuture<Void> commit = CompletableFuture.runAsync(
                    () -> {
                        try {
                            execute(db.dataSource(), "INSERT INTO t VALUES (2)");
                        } catch (SQLException e) {
                            throw new IllegalStateException(e);
                        }
                    },
                    threads);
            awaitTrue(db.adminDataSource(), WAITING);
            assertThat(commit).isNotDone();
            db.standbys().getFirst().restart();
            commit.get();
        }
    }

    @Test
    void dataFolder_usedAgain_keepsItsStandby(@TempDir Path folder) throws Exception {
        try (var db = small(StandbyMode.SYNCHRONOUS).dataFolder(folder).start()) {
            execute(db.dataSource(), "CREATE TABLE t AS SELECT 1 AS x");
        }
        try (var db = small(StandbyMode.SYNCHRONOUS).dataFolder(folder).start()) {
            execute(db.dataSource(), "INSERT INTO t VALUES (2)");
            awaitTrue(db.standbys().getFirst().adminDataSource(), "SELECT count(*) = 2 FROM t");
        }
    }

    @Test
    void standby_copiedInPart_isCopiedAgain(@TempDir Path folder) throws Exception {
        try (var db = small(StandbyMode.NONE).dataFolder(folder).start()) {
            execute(db.dataSource(), "CREATE TABLE t AS SELECT 1 AS x");
        }
        // What is left of a start that was killed while it copied the primary's files.
        Path part = Files.createDirectories(folder.resolve("standby1/copy"));
        Files.copy(folder.resolve("data/PG_VERSION"), part.resolve("PG_VERSION"));

        try (var db = small(StandbyMode.SYNCHRONOUS).dataFolder(folder).start()) {
            execute(db.dataSource(), "INSERT INTO t VALUES (2)");
            awaitTrue(db.standbys().getFirst().adminDataSource(), "SELECT count(*) = 2 FROM t");
        }
    }

    @Test
    void standby_wasPromoted_isNotOverwritten(@TempDir Path folder) throws Exception {
        small(StandbyMode.SYNCHRONOUS).dataFolder(folder).start().close();
        Files.delete(folder.resolve("standby1/data/standby.signal")); // as a promotion does

        assertThatThrownBy(
                        () -> small(StandbyMode.SYNCHRONOUS).dataFolder(folder).start())
                .hasMessageContaining("standby1")
                .hasMessageContaining("was promoted");
    }

    private static void execute(DataSource dataSource, String sql) throws SQLException {
        try (var connection = dataSource.getConnection();
                var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Polls until the query returns true. Relies on the timeout of the test. */
    private static void awaitTrue(DataSource dataSource, String sql) throws SQLException {
        try (var connection = dataSource.getConnection();
                var statement = connection.prepareStatement(sql)) {
            boolean isTrue = false;
            while (!isTrue) {
                try (var row = statement.executeQuery()) {
                    row.next();
                    isTrue = row.getBoolean(1);
                }
                LockSupport.parkNanos(POLL_NANOS);
            }
        }
    }
}
