package io.eventsql.eventsdb;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Runs EventSQL databases in the foreground without Docker. See the usage text. */
public final class EventsDbLauncher {

    private static final int FAILED = 1;
    private static final int WRONG_USAGE = 2;

    private static final String USAGE = """
            Usage: java -jar events-db.jar [options]

            Starts PostgreSQL servers with EventSQL's settings on the loopback address and keeps them
            running until SIGTERM or SIGINT. Temporary data is removed on exit.

              --count N               servers to start (default 1)
              --ports P1,P2,...       one port per server; 0, the default, selects a free one
              --data-folder DIR       keep the data in DIR/db-1, DIR/db-2, ... and reuse it next time
                                      (default: temporary folders; do not use a tmpfs for benchmarks)
              --setting NAME=VALUE    override a line of postgresql.conf; repeatable
              --recycled-wal MB       WAL files to preallocate in new servers, as in servers in use (0 to 2000,
                                      default 0); for benchmarks; takes seconds
              --standbys KIND         standbys of each server: none (default), asynchronous (one),
                                      synchronous (one; commits wait for it), quorum (two; commits wait
                                      for one of them)
              --monitoring            let the user see all server processes and start checkpoints (pg_monitor,
                                      pg_checkpoint); for benchmarks
              --not-durable           turn fsync and synchronous_commit off; never for a benchmark
              --out FILE              write connection details as JSON to FILE when all servers are ready;
                                      readable only by its owner and removed on exit
              --stop-on-stdin-close   also stop when standard input ends
              --help                  show this text

            Examples:
              java -jar events-db.jar
              java -jar events-db.jar --count 3 --out /tmp/shards.json
              java -jar events-db.jar --standbys synchronous
              java -jar events-db.jar --ports 5433 --data-folder ./data --setting shared_buffers=1GB

            Exit codes: 0 standard input ended, or help shown; 1 a server did not start;
            2 invalid usage; 130 after SIGINT, 143 after SIGTERM (all servers are stopped as well).
            """;

    private record Options(
            int count,
            List<Integer> ports,
            @Nullable Path dataFolder,
            Map<String, String> settings,
            int recycledWal,
            StandbyMode standbys,
            boolean monitoring,
            boolean durable,
            @Nullable Path out,
            boolean stopOnStdinClose) {}

    private static final class UsageException extends Exception {
        UsageException(String message) {
            super(message);
        }
    }

    private EventsDbLauncher() {}

    public static void main(String[] arguments) throws InterruptedException {
        if (List.of(arguments).contains("--help")) {
            System.out.print(USAGE);
            return;
        }
        try {
            run(parse(List.of(arguments)), System.out);
        } catch (UsageException e) {
            System.err.println(e.getMessage() + " (--help shows the usage)");
            System.exit(WRONG_USAGE);
        } catch (IOException | RuntimeException e) {
            System.err.println("Starting the databases failed: " + withCauses(e));
            System.exit(FAILED);
        }
    }

    private static String withCauses(Exception failure) {
        String message = failure.getMessage();
        StringBuilder text = new StringBuilder(message == null ? failure.toString() : message);
        for (@Nullable Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            text.append(": ").append(cause);
        }
        return text.toString();
    }

    private static void run(Options options, PrintStream console) throws IOException, InterruptedException {
        Path out = options.out;
        if (out != null) {
            Files.deleteIfExists(out);
        }
        var servers = new ArrayList<EmbeddedEventsDb>();
        try {
            for (int index = 0; index < options.count; index++) {
                EmbeddedEventsDb server = start(options, index);
                servers.add(server);
                console.printf(
                        "%s pid=%d server_version=%s fsync=%s synchronous_commit=%s folder=%s%n",
                        server.jdbcUrl(),
                        server.processId(),
                        server.show("server_version"),
                        server.show("fsync"),
                        server.show("synchronous_commit"),
                        server.folder());
                for (EmbeddedStandby standby : server.standbys()) {
                    console.printf("  %s pid=%d port=%d%n", standby.name(), standby.processId(), standby.port());
                }
            }
            if (out != null) {
                write(out, json(servers));
                // After a signal, this process exits without returning here. The servers have their own hooks.
                Runtime.getRuntime().addShutdownHook(new Thread(() -> removeQuietly(out), "remove-out-file"));
            }
            console.println("Ready: " + options.count + " running, stop with Ctrl-C");
            if (options.stopOnStdinClose) {
                System.in.transferTo(PrintStream.nullOutputStream());
            } else {
                new CountDownLatch(1).await();
            }
        } finally {
            servers.forEach(EmbeddedEventsDb::close);
        }
    }

    private static EmbeddedEventsDb start(Options options, int index) {
        var builder = EmbeddedEventsDb.builder().durable(options.durable).port(options.ports.get(index));
        options.settings.forEach(builder::setting);
        builder.recycledWal(options.recycledWal).standbys(options.standbys);
        if (options.dataFolder != null) {
            builder.dataFolder(options.dataFolder.resolve("db-" + (index + 1)));
        }
        EmbeddedEventsDb server = builder.start();
        if (options.monitoring) {
            grantMonitoring(server);
        }
        return server;
    }

    private static void grantMonitoring(EmbeddedEventsDb server) {
        try (var connection = server.adminDataSource().getConnection();
                var statement = connection.createStatement()) {
            statement.execute("GRANT pg_monitor, pg_checkpoint TO " + InitSql.USERNAME);
        } catch (SQLException e) {
            server.close();
            throw new IllegalStateException("cannot grant the rights of --monitoring", e);
        }
    }

    private static Options parse(List<String> arguments) throws UsageException {
        int count = 1;
        List<Integer> ports = List.of();
        Path dataFolder = null;
        var settings = new LinkedHashMap<String, String>();
        int recycledWal = 0;
        StandbyMode standbys = StandbyMode.NONE;
        boolean monitoring = false;
        boolean durable = true;
        Path out = null;
        boolean stopOnStdinClose = false;

        var rest = arguments.iterator();
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "--monitoring" -> monitoring = true;
                case "--not-durable" -> durable = false;
                case "--stop-on-stdin-close" -> stopOnStdinClose = true;
                case "--count", "--ports", "--data-folder", "--setting", "--recycled-wal", "--standbys", "--out" -> {
                    if (!rest.hasNext()) {
                        throw new UsageException(option + " requires a value");
                    }
                    String value = rest.next();
                    switch (option) {
                        case "--count" -> count = number(option, value, 1, 64);
                        case "--ports" -> ports = ports(option, value);
                        case "--recycled-wal" -> recycledWal = number(option, value, 0, RecycledWal.WAL_MAX_MEGABYTES);
                        case "--standbys" -> standbys = standbys(value);
                        case "--data-folder" -> dataFolder = Path.of(value);
                        case "--out" -> out = Path.of(value).toAbsolutePath();
                        default -> {
                            String[] parts = value.split("=", 2);
                            if (parts.length < 2) {
                                throw new UsageException("--setting must be NAME=VALUE, but is " + value);
                            }
                            settings.put(parts[0], parts[1]);
                        }
                    }
                }
                default -> throw new UsageException("unknown option " + option);
            }
        }
        if (ports.isEmpty()) {
            ports = Stream.generate(() -> 0).limit(count).toList();
        }
        if (ports.size() != count) {
            throw new UsageException("--ports lists " + ports.size() + " ports for " + count + " servers");
        }
        return new Options(
                count, ports, dataFolder, settings, recycledWal, standbys, monitoring, durable, out, stopOnStdinClose);
    }

    private static List<Integer> ports(String option, String value) throws UsageException {
        var ports = new ArrayList<Integer>();
        for (String port : value.split(",", -1)) {
            ports.add(number(option, port.strip(), 0, 65535));
        }
        return List.copyOf(ports);
    }

    private static StandbyMode standbys(String value) throws UsageException {
        return StandbyMode.of(value)
                .orElseThrow(() -> new UsageException("--standbys must be one of "
                        + Arrays.stream(StandbyMode.values())
                                .map(StandbyMode::label)
                                .collect(joining(", "))
                        + ", but is " + value));
    }

    private static int number(String option, String value, int min, int max) throws UsageException {
        try {
            int number = Integer.parseInt(value);
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new UsageException(option + " must be between " + min + " and " + max + ", but is " + value);
    }

    private static String json(List<EmbeddedEventsDb> servers) {
        return servers.stream().map(EventsDbLauncher::json).collect(joining(",\n", "{\"servers\": [\n", "\n]}\n"));
    }

    private static String json(EmbeddedEventsDb server) {
        return """
                  {"host": %s, "port": %d, "database": %s, "user": %s, "password": %s, "pid": %d, "jdbcUrl": %s, \
                "serverVersion": %s, "folder": %s, "standbys": [%s]}""".formatted(
                        quoted(server.host()),
                        server.port(),
                        quoted(InitSql.DATABASE),
                        quoted(server.username()),
                        quoted(server.password()),
                        server.processId(),
                        quoted(server.jdbcUrl()),
                        quoted(server.show("server_version")),
                        quoted(server.folder().toString()),
                        server.standbys().stream().map(EventsDbLauncher::json).collect(joining(", ")));
    }

    private static String json(EmbeddedStandby standby) {
        return "{\"name\": %s, \"port\": %d, \"pid\": %d}"
                .formatted(quoted(standby.name()), standby.port(), standby.processId());
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    /** Writes the file atomically, so that a reader never sees a partial file. */
    private static void write(Path file, String text) throws IOException {
        Path folder = file.resolveSibling(".").normalize();
        Files.createDirectories(folder);
        Path unfinished = Files.createTempFile(
                folder,
                file.getFileName() + ".",
                ".tmp",
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.writeString(unfinished, text);
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
    }

    private static void removeQuietly(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException e) {
            System.err.println("cannot remove " + file + ": " + e.getMessage());
        }
    }
}
