package io.eventsql.eventsdb;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

class EmbeddedEventsDbIT {

    private static EmbeddedEventsDb.Builder small() {
        return EmbeddedEventsDb.builder().setting("shared_buffers", "32MB");
    }

    @Test
    void start_serverHasTheSettingsOfPostgresqlConf() {
        try (var db = EmbeddedEventsDb.builder().start()) {
            assertThat(db.show("fsync")).isEqualTo("on");
            assertThat(db.show("synchronous_commit")).isEqualTo("on");
            assertThat(db.show("full_page_writes")).isEqualTo("on");
            assertThat(db.show("shared_buffers")).isEqualTo("512MB");
            assertThat(db.show("max_wal_size")).isEqualTo("4GB");
            assertThat(db.show("listen_addresses")).isEqualTo("127.0.0.1");
            assertThat(db.show("server_version")).startsWith("18.");
        }
    }

    @Test
    void start_eventsqlOwnsTheDatabaseAndUsesUtc() throws SQLException {
        try (var db = small().start();
                var connection = db.dataSource().getConnection()) {
            assertThat(query(connection, "SELECT current_user || '@' || current_database()"))
                    .isEqualTo("eventsql@eventsql");
            assertThat(query(connection, "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user"))
                    .isEqualTo("false");
            assertThat(query(connection, "SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'"))
                    .isNotNull();
            execute(connection, "CREATE SCHEMA eventsql");
            try (var other = db.createDatabase("second_shard").getConnection()) {
                assertThat(query(other, "SELECT current_user || '@' || current_database()"))
                        .isEqualTo("eventsql@second_shard");
            }
        }
    }

    @Test
    void setting_overridesTheFile() {
        try (var db = small().setting("work_mem", "3MB").start()) {
            assertThat(db.show("work_mem")).isEqualTo("3MB");
            assertThat(db.show("shared_buffers")).isEqualTo("32MB");
        }
    }

    @Test
    void recycledWal_newServer_hasTheFilesReady() throws SQLException {
        try (var db = small().recycledWal(128).start();
                var connection = db.adminDataSource().getConnection()) {
            String unused =
                    "SELECT count(*)::text FROM pg_ls_waldir() WHERE name > pg_walfile_name(pg_current_wal_lsn())";
            assertThat(Integer.parseInt(query(connection, unused))).isGreaterThanOrEqualTo(128 / 16 - 2);
        }
    }

    @Test
    void recycledWal_outOfRange_isRejected() {
        assertThatThrownBy(() -> small().recycledWal(2_001))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("recycledWal must be between 0 and 2000, but is 2001");
    }

    @Test
    void start_notDurableByASetting_isRejected() {
        assertThatThrownBy(() -> small().setting("fsync", "off").start())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("fsync is off");
    }

    @Test
    void start_durableFalse_switchesFsyncOff() {
        try (var db = small().durable(false).start()) {
            assertThat(db.show("fsync")).isEqualTo("off");
            assertThat(db.show("synchronous_commit")).isEqualTo("off");
        }
    }

    @Test
    void start_invalidSetting_reportsTheServerLog() {
        assertThatThrownBy(() -> small().setting("no_such_setting", "1").start())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("no_such_setting");
    }

    @Test
    void crashThenRestart_keepsOnlyCommittedData() throws SQLException {
        try (var db = small().start()) {
            long processIdBefore = db.processId();
            int portBefore = db.port();
            var children =
                    ProcessHandle.of(processIdBefore).orElseThrow().children().toList();
            try (var committed = db.dataSource().getConnection();
                    var open = db.dataSource().getConnection()) {
                execute(committed, "CREATE TABLE t (a int)");
                execute(committed, "INSERT INTO t VALUES (1), (2)");
                open.setAutoCommit(false);
                execute(open, "INSERT INTO t VALUES (3)");

                db.crash();

                assertThatThrownBy(() -> query(committed, "SELECT 1")).isInstanceOf(SQLException.class);
            } catch (SQLException e) {
                // Closing the open transaction fails, because its server was killed.
                assertThat(e.getMessage()).contains("I/O error");
            }
            assertThat(children).isNotEmpty().noneMatch(ProcessHandle::isAlive);
            assertThatThrownBy(db::processId).isInstanceOf(IllegalStateException.class);

            db.restart();

            assertThat(db.port()).isEqualTo(portBefore);
            assertThat(db.processId()).isNotEqualTo(processIdBefore);
            try (var connection = db.dataSource().getConnection()) {
                assertThat(query(connection, "SELECT string_agg(a::text, ',' ORDER BY a) FROM t"))
                        .isEqualTo("1,2");
            }
        }
    }

    /** Otherwise each crash in a test would take a megabyte of the machine's memory until it is restarted. */
    @Test
    @EnabledOnOs(value = OS.LINUX, disabledReason = "shared memory is listed in /dev/shm and /proc by Linux only")
    void close_afterACrash_leavesNoSharedMemory() throws IOException {
        var db = small().start();
        List<Path> segments = sharedMemory(db.processId());
        String identifier = Files.readAllLines(db.folder().resolve("data/postmaster.pid"))
                .get(6)
                .strip()
                .split(" +")[1];
        db.crash();
        assertThat(segments)
                .isNotEmpty()
                .allSatisfy(segment -> assertThat(segment).exists());
        assertThat(sharedMemoryIdentifiers()).contains(identifier);

        db.close();

        assertThat(segments).allSatisfy(segment -> assertThat(segment).doesNotExist());
        assertThat(sharedMemoryIdentifiers()).doesNotContain(identifier);
    }

    private static List<Path> sharedMemory(long processId) throws IOException {
        try (var mapped = Files.lines(Path.of("/proc/" + processId + "/maps"))) {
            return mapped.map(line -> line.substring(line.lastIndexOf(' ') + 1))
                    .filter(path -> path.startsWith("/dev/shm/PostgreSQL."))
                    .distinct()
                    .map(Path::of)
                    .toList();
        }
    }

    private static List<String> sharedMemoryIdentifiers() throws IOException {
        try (var segments = Files.lines(Path.of("/proc/sysvipc/shm"))) {
            return segments.skip(1).map(line -> line.strip().split(" +")[1]).toList();
        }
    }

    @Test
    void restart_ofARunningServer_stopsItFirst() throws SQLException {
        try (var db = small().start()) {
            try (var connection = db.dataSource().getConnection()) {
                execute(connection, "CREATE TABLE t AS SELECT 1 AS a");
            }
            db.restart();
            try (var connection = db.dataSource().getConnection()) {
                assertThat(query(connection, "SELECT a::text FROM t")).isEqualTo("1");
            }
        }
    }

    @Test
    void close_stopsTheServerAndRemovesItsTemporaryFolder() {
        var db = small().start();
        var postmaster = ProcessHandle.of(db.processId()).orElseThrow();
        assertThat(db.folder()).isDirectory();

        db.close();
        db.close();

        assertThat(postmaster.isAlive()).isFalse();
        assertThat(db.folder()).doesNotExist();
    }

    @Test
    void close_keepsADataFolder_whichTheNextStartReuses(@TempDir Path folder) throws SQLException {
        try (var db = small().dataFolder(folder).start();
                var connection = db.dataSource().getConnection()) {
            execute(connection, "CREATE TABLE t AS SELECT 1 AS a");
        }
        try (var db = small().dataFolder(folder).start();
                var connection = db.dataSource().getConnection()) {
            assertThat(query(connection, "SELECT a::text FROM t")).isEqualTo("1");
        }
    }

    /** As after a disk that was full: without the passwords the data is of no use. */
    @Test
    void start_inADataFolderWithoutPasswords_isRejected(@TempDir Path folder) throws IOException {
        Files.createDirectory(folder.resolve("data"));
        Files.createFile(folder.resolve("secrets.properties"));

        assertThatThrownBy(() -> small().dataFolder(folder).start())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("did not complete; remove the folder");
    }

    @Test
    void start_severalAtOnce_eachGetsItsOwnPort() throws Exception {
        try (var executor = Executors.newFixedThreadPool(3)) {
            Callable<EmbeddedEventsDb> start = () -> small().start();
            List<Future<EmbeddedEventsDb>> servers = executor.invokeAll(List.of(start, start, start));
            try (var first = servers.get(0).get();
                    var second = servers.get(1).get();
                    var third = servers.get(2).get()) {
                assertThat(List.of(first.port(), second.port(), third.port())).doesNotHaveDuplicates();
                assertThat(third.show("fsync")).isEqualTo("on");
                // Copies of one empty cluster, each with a password of its own for the application.
                assertThat(systemIdentifier(first)).isEqualTo(systemIdentifier(second));
                assertThat(first.password()).isNotEqualTo(second.password());
            }
        }
    }

    private static String systemIdentifier(EmbeddedEventsDb server) throws SQLException {
        try (Connection connection = server.adminDataSource().getConnection()) {
            return query(connection, "SELECT system_identifier::text FROM pg_control_system()");
        }
    }

    @Test
    void eventsDb_start_honoursTheProperty() {
        try (var db = EventsDb.start()) {
            assertThat(db.show("fsync")).isEqualTo("on");
        }
    }

    private static String query(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement();
                var rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getString(1);
        }
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }
}
