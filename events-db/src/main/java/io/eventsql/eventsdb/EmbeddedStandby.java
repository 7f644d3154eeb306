package io.eventsql.eventsdb;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** A hot standby of an {@link EmbeddedEventsDb} with streaming replication. It stops with its primary. Thread-safe. */
public final class EmbeddedStandby {

    private static final String SIGNAL = "standby.signal";

    private final PostgresBinaries binaries;
    private final ServerFolder primary;
    private final String name;

    private volatile int port;
    private @Nullable Postmaster postmaster;

    EmbeddedStandby(PostgresBinaries binaries, ServerFolder primary, String name) {
        this.binaries = binaries;
        this.primary = primary;
        this.name = name;
    }

    /** Returns its application name, such as {@code standby1}. */
    public String name() {
        return name;
    }

    /** Returns the TCP port on the loopback address. */
    public int port() {
        return port;
    }

    /**
     * Returns the process id of its postmaster.
     *
     * @throws IllegalStateException if it is not running
     */
    public synchronized long processId() {
        if (postmaster == null) {
            throw new IllegalStateException(name + " is not running");
        }
        return postmaster.processId();
    }

    /** Returns unpooled read-only superuser connections to the database {@code eventsql}. */
    public DataSource adminDataSource() {
        var dataSource = new PGSimpleDataSource();
        dataSource.setUrl("jdbc:postgresql://" + EmbeddedEventsDb.HOST + ":" + port + "/" + InitSql.DATABASE);
        dataSource.setUser(ServerFolder.SUPERUSER);
        dataSource.setPassword(primary.superuserPassword());
        return dataSource;
    }

    /** Stops it with a fast shutdown and keeps its data. Commits that require it wait. */
    public synchronized void stop() {
        if (postmaster != null) {
            Postmaster stopping = postmaster;
            postmaster = null;
            stopping.stopFast();
        }
    }

    /** Restarts it on the same data and port. It catches up with the primary. Does nothing if it is running. */
    public synchronized void restart() {
        if (postmaster == null) {
            try {
                launch();
            } catch (IOException e) {
                throw new UncheckedIOException("cannot start " + name, e);
            }
        }
    }

    /**
     * Copies the data of the stopped primary, unless a copy from an earlier start exists.
     *
     * @throws IllegalStateException if that was promoted
     */
    void copy() throws IOException {
        if (Files.exists(data())) {
            if (!Files.exists(data().resolve(SIGNAL))) {
                throw new IllegalStateException(
                        data() + " was promoted and is no standby any more; remove it to copy the primary again");
            }
            return;
        }
        Path copy = folder().resolve("copy"); // becomes the data when it is complete
        if (Files.exists(copy)) {
            Folders.remove(copy);
        }
        Files.createDirectories(folder());
        try (Stream<Path> paths = Files.walk(primary.data())) {
            for (Path each : paths.toList()) {
                Path relative = primary.data().relativize(each);
                // Replication slots belong to the primary.
                if (!relative.startsWith("pg_replslot") || relative.getNameCount() == 1) {
                    Files.copy(each, copy.resolve(relative.toString()), StandardCopyOption.COPY_ATTRIBUTES);
                }
            }
        }
        Files.createFile(copy.resolve(SIGNAL));
        Files.move(copy, data(), StandardCopyOption.ATOMIC_MOVE);
    }

    /** Starts it as a standby of the server on the given port. */
    synchronized void start(PostgresConf conf, int primaryPort) throws IOException {
        var settings = new LinkedHashMap<String, String>();
        settings.put("primary_slot_name", name);
        settings.put(
                "primary_conninfo",
                "host=%s port=%d user=%s password=%s application_name=%s"
                        .formatted(
                                EmbeddedEventsDb.HOST,
                                primaryPort,
                                ServerFolder.SUPERUSER,
                                primary.superuserPassword(),
                                name));
        Files.writeString(
                data().resolve("postgresql.conf"),
                conf.with(Map.copyOf(settings)).text());
        port = FreePorts.launch(0, candidate -> {
            port = candidate;
            launch();
        });
    }

    /** Stops it without a checkpoint, because its data is discarded. */
    synchronized void stopImmediately() {
        if (postmaster != null) {
            postmaster.stopImmediately();
            postmaster = null;
        }
    }

    private void launch() throws IOException {
        // The last guard finds no server left and removes everything.
        var paths = new Postmaster.ServerPaths(
                data(),
                folder().resolve("server.log"),
                primary.isTemporary() ? primary.path().toString() : "");
        postmaster = Postmaster.start(binaries, paths, EmbeddedEventsDb.HOST, port);
    }

    private Path folder() {
        return primary.path().resolve(name);
    }

    private Path data() {
        return folder().resolve("data");
    }
}
