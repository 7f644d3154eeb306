package io.eventsql.eventsdb;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the launcher in its own process, as scripts do. */
class EventsDbLauncherIT {

    private static final Pattern PROCESS_ID = Pattern.compile("\"pid\": (\\d+)");
    private static final Pattern FOLDER = Pattern.compile("\"folder\": \"([^\"]+)\"");

    @Test
    void stdinClosed_stopsAllServersAndRemovesTheirData(@TempDir Path folder) throws Exception {
        Path out = folder.resolve("servers.json");
        Process launcher = launch(
                "--count", "2", "--setting", "shared_buffers=32MB", "--out", out.toString(), "--stop-on-stdin-close");
        var reader = launcher.inputReader(UTF_8);
        assertThat(reader.readLine()).contains("fsync=on synchronous_commit=on");
        assertThat(reader.readLine()).contains("fsync=on synchronous_commit=on");
        assertThat(reader.readLine()).startsWith("Ready: 2");
        String json = Files.readString(out);
        assertThat(processIds(json)).hasSize(2).allMatch(EventsDbLauncherIT::isAlive);

        launcher.getOutputStream().close();

        assertThat(launcher.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(launcher.exitValue()).isZero();
        assertThat(processIds(json)).noneMatch(EventsDbLauncherIT::isAlive);
        assertThat(folders(json)).hasSize(2).allMatch(Files::notExists);
        assertThat(out).doesNotExist();
    }

    @Test
    void sigterm_stopsTheServer(@TempDir Path folder) throws Exception {
        Path out = folder.resolve("servers.json");
        Process launcher = launch("--setting", "shared_buffers=32MB", "--out", out.toString());
        awaitReady(launcher);
        String json = Files.readString(out);

        launcher.destroy();

        assertThat(launcher.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(launcher.exitValue()).isEqualTo(143);
        assertThat(processIds(json)).hasSize(1).noneMatch(EventsDbLauncherIT::isAlive);
        assertThat(folders(json)).allMatch(Files::notExists);
        assertThat(out).doesNotExist();
    }

    @Test
    void standbys_areListedAndStopped_andMonitoringLetsTheUserStartCheckpoints(@TempDir Path folder) throws Exception {
        Path out = folder.resolve("servers.json");
        Process launcher = launch(
                "--standbys",
                "quorum",
                "--monitoring",
                "--setting",
                "shared_buffers=32MB",
                "--out",
                out.toString(),
                "--stop-on-stdin-close");
        awaitReady(launcher);
        String json = Files.readString(out);
        assertThat(json).contains("\"name\": \"standby1\"").contains("\"name\": \"standby2\"");
        assertThat(processIds(json)).hasSize(3).allMatch(EventsDbLauncherIT::isAlive);
        try (var connection = DriverManager.getConnection(text(json, "jdbcUrl"), "eventsql", text(json, "password"));
                var statement = connection.createStatement()) {
            statement.execute("CHECKPOINT");
            var row = statement.executeQuery("SELECT pg_has_role('pg_read_all_stats', 'usage')");
            assertThat(row.next() && row.getBoolean(1)).isTrue();
        }

        launcher.getOutputStream().close();

        assertThat(launcher.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(launcher.exitValue()).isZero();
        assertThat(processIds(json)).noneMatch(EventsDbLauncherIT::isAlive);
        assertThat(folders(json)).allMatch(Files::notExists);
    }

    @Test
    void standbys_sigkill_theGuardsStopThem(@TempDir Path folder) throws Exception {
        Path out = folder.resolve("servers.json");
        Process launcher =
                launch("--standbys", "synchronous", "--setting", "shared_buffers=32MB", "--out", out.toString());
        awaitReady(launcher);
        List<Long> servers = processIds(Files.readString(out));
        assertThat(servers).hasSize(2);

        launcher.destroyForcibly().waitFor();

        for (long processId : servers) {
            var server = ProcessHandle.of(processId);
            if (server.isPresent()) {
                server.get().onExit().get(120, TimeUnit.SECONDS);
            }
        }
    }

    private static String text(String json, String field) {
        var matcher = Pattern.compile('"' + field + "\": \"([^\"]+)\"").matcher(json);
        assertThat(matcher.find()).isTrue();
        return matcher.group(1);
    }

    @Test
    void unknownStandbys_exitWithTwo() throws Exception {
        Process launcher = launch("--standbys", "many");

        assertThat(launcher.errorReader(UTF_8).readLine())
                .contains("--standbys must be one of none, asynchronous, synchronous, quorum, but is many");
        assertThat(launcher.waitFor()).isEqualTo(2);
    }

    @Test
    void dataFolderThatCannotBeCreated_exitsWithOneAndTheReason(@TempDir Path folder) throws Exception {
        Path file = Files.createFile(folder.resolve("file"));

        Process launcher = launch("--data-folder", file.toString());

        assertThat(launcher.errorReader(UTF_8).readLine())
                .startsWith("Starting the databases failed: cannot start PostgreSQL: ")
                .contains(file.toString());
        assertThat(launcher.waitFor()).isEqualTo(1);
    }

    @Test
    void unknownOption_exitsWithTwo() throws Exception {
        Process launcher = launch("--cuont", "3");

        assertThat(launcher.errorReader(UTF_8).readLine()).contains("unknown option --cuont");
        assertThat(launcher.waitFor()).isEqualTo(2);
    }

    private static Process launch(String... arguments) throws IOException {
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                EventsDbLauncher.class.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).start();
    }

    private static void awaitReady(Process launcher) throws IOException {
        var reader = launcher.inputReader(UTF_8);
        String line = reader.readLine();
        while (line != null && !line.startsWith("Ready")) {
            line = reader.readLine();
        }
        assertThat(line).isNotNull();
    }

    private static boolean isAlive(long processId) {
        return ProcessHandle.of(processId).isPresent();
    }

    private static List<Long> processIds(String json) {
        return PROCESS_ID
                .matcher(json)
                .results()
                .map(match -> Long.valueOf(match.group(1)))
                .toList();
    }

    private static List<Path> folders(String json) {
        return FOLDER.matcher(json)
                .results()
                .map(match -> Path.of(match.group(1)))
                .toList();
    }
}
