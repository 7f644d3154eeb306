package io.eventsql.eventsdb;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A PostgreSQL server run by this process from binaries on the class path. Listens on the loopback address only, and
 * stops with this process, even if that is killed. Can be crashed and restarted on the same data and port. Thread-safe.
 */
public final class EmbeddedEventsDb implements EventsDb {

    static final String HOST = "127.0.0.1";

    private static final Logger LOGGER = System.getLogger(EmbeddedEventsDb.class.getName());

    private final PostgresBinaries binaries;
    private final ServerFolder folder;
    private final boolean durable;
    private final PostgresConf conf;
    private final StandbyMode standbyMode;
    private final List<EmbeddedStandby> standbys;
    private final Thread shutdownHook = new Thread(this::stopAndRemove, "events-db-shutdown");

    private volatile int port;
    private @Nullable Postmaster postmaster;
    private boolean closed;

    private EmbeddedEventsDb(Builder builder, PostgresBinaries binaries, ServerFolder folder) {
        this.binaries = binaries;
        this.folder = folder;
        this.durable = builder.durable;
        var overrides = new LinkedHashMap<String, String>();
        if (!durable) {
            Durability.SETTINGS.forEach(setting -> overrides.put(setting, "off"));
        }
        overrides.putAll(builder.settings);
        if (builder.recycledWalMegabytes > 0) {
            overrides.put("min_wal_size", builder.recycledWalMegabytes + "MB");
        }
        this.conf = PostgresConf.load().with(overrides);
        this.port = builder.port;
        this.standbyMode = builder.standbys;
        this.standbys = standbyMode.names().stream()
                .map(name -> new EmbeddedStandby(binaries, folder, name))
                .toList();
    }

    public static Builder builder() {
        return new Builder();
    }

    /** The settings of a server. Not thread-safe. */
    public static final class Builder {

        private int port;
        private @Nullable Path dataFolder;
        private boolean durable = true;
        private boolean stopsAtExit = true;
        private int recycledWalMegabytes;
        private StandbyMode standbys = StandbyMode.NONE;
        private final Map<String, String> settings = new LinkedHashMap<>();

        private Builder() {}

        /** Sets the TCP port on the loopback address; 0, the default, selects a free one. */
        public Builder port(int port) {
            if (port < 0 || port > 65535) {
                throw new IllegalArgumentException("not a port: " + port);
            }
            this.port = port;
            return this;
        }

        /**
         * Sets a data folder that is kept on close and reused if it contains data from an earlier start. By default, a
         * temporary folder is created, and removed on close.
         */
        public Builder dataFolder(Path dataFolder) {
            this.dataFolder = dataFolder;
            return this;
        }

        /** Overrides a line of {@code postgresql.conf} or adds one, such as {@code shared_buffers}, {@code 32MB}. */
        public Builder setting(String name, String value) {
            settings.put(name, value);
            return this;
        }

        /**
         * Sets whether commits survive a power failure; true by default. Use false only in tests that do not depend on
         * it.
         */
        public Builder durable(boolean durable) {
            this.durable = durable;
            return this;
        }

        /**
         * Sets whether the server stops as soon as this JVM starts to exit; true by default. Use false if other code
         * calls {@link EmbeddedEventsDb#close()} on exit, because shutdown hooks run concurrently and users of the
         * server must be closed first.
         */
        public Builder stopsAtExit(boolean stopsAtExit) {
            this.stopsAtExit = stopsAtExit;
            return this;
        }

        /**
         * Sets the megabytes of WAL files to preallocate in a new server, as in one that has been in use; 0, the
         * default, to 2,000. Takes seconds. For benchmarks of a steady state.
         */
        public Builder recycledWal(int megabytes) {
            if (megabytes < 0 || megabytes > RecycledWal.WAL_MAX_MEGABYTES) {
                throw new IllegalArgumentException(
                        "recycledWal must be between 0 and " + RecycledWal.WAL_MAX_MEGABYTES + ", but is " + megabytes);
            }
            this.recycledWalMegabytes = megabytes;
            return this;
        }

        /**
         * Sets the standby servers, each on a free port and with the same settings; none by default. All of them run
         * and stream when the start returns.
         */
        public Builder standbys(StandbyMode standbys) {
            this.standbys = standbys;
            return this;
        }

        /**
         * Starts the server and creates the role and the database.
         *
         * @throws IllegalStateException if the server does not start, or is not durable although it should be
         */
        public EmbeddedEventsDb start() {
            try {
                return EmbeddedEventsDb.start(this);
            } catch (IOException e) {
                throw new UncheckedIOException("cannot start PostgreSQL", e);
            }
        }
    }

    private static EmbeddedEventsDb start(Builder builder) throws IOException {
        var binaries = PostgresBinaries.unpack();
        var folder = ServerFolder.open(builder.dataFolder, binaries);
        var eventsDb = new EmbeddedEventsDb(builder, binaries, folder);
        if (builder.stopsAtExit) {
            Runtime.getRuntime().addShutdownHook(eventsDb.shutdownHook);
        }
        try {
            if (folder.isNew()) {
                folder.createCluster(binaries);
            }
            Files.writeString(folder.data().resolve("postgresql.conf"), eventsDb.conf.text());
            if (folder.isNew() || eventsDb.standbys.isEmpty()) {
                eventsDb.launchOnFreePort(builder.port);
            }
            if (folder.isNew()) {
                eventsDb.createRoleAndDatabase();
                folder.writeSecrets();
                if (builder.recycledWalMegabytes > 0) {
                    RecycledWal.create(eventsDb.adminDataSource(), builder.recycledWalMegabytes);
                }
            }
            if (!eventsDb.standbys.isEmpty()) {
                eventsDb.startWithStandbys(builder.port);
            }
            if (eventsDb.durable) {
                Durability.require(eventsDb);
            }
            return eventsDb;
        } catch (IOException | RuntimeException e) {
            eventsDb.close();
            throw e;
        }
    }

    /** Enables synchronous replication only after the standbys exist, because earlier commits would block. */
    private void startWithStandbys(int givenPort) throws IOException {
        stop();
        for (EmbeddedStandby standby : standbys) {
            standby.copy();
        }
        Map<String, String> names = Map.of("synchronous_standby_names", standbyMode.synchronousStandbyNames());
        Files.writeString(
                folder.data().resolve("postgresql.conf"), conf.with(names).text());
        launchOnFreePort(givenPort);
        Replication.createSlots(adminDataSource(), standbyMode.names());
        for (EmbeddedStandby standby : standbys) {
            standby.start(conf, port);
        }
        Replication.awaitStreaming(adminDataSource(), standbyMode);
    }

    /** Returns the standbys configured by {@link Builder#standbys}, in the order of their names. */
    public List<EmbeddedStandby> standbys() {
        return standbys;
    }

    @Override
    public String jdbcUrl() {
        return url(InitSql.DATABASE);
    }

    @Override
    public String username() {
        return InitSql.USERNAME;
    }

    @Override
    public String password() {
        return folder.password();
    }

    public String host() {
        return HOST;
    }

    public int port() {
        return port;
    }

    /** Returns the folder with the data and the server log. */
    public Path folder() {
        return folder.path();
    }

    @Override
    public DataSource dataSource() {
        return dataSource(InitSql.DATABASE, InitSql.USERNAME, folder.password());
    }

    @Override
    public DataSource adminDataSource() {
        return dataSource(InitSql.DATABASE, ServerFolder.SUPERUSER, folder.superuserPassword());
    }

    /**
     * Returns the process id of the postmaster, the parent of all other server processes.
     *
     * @throws IllegalStateException if the server is not running
     */
    public synchronized long processId() {
        return requireRunning().processId();
    }

    /**
     * Kills all server processes at once, like a crash of the machine, except that data passed to the operating system
     * is kept. Returns when all processes have ended.
     *
     * @throws IllegalStateException if the server is not running
     */
    public synchronized void crash() {
        Postmaster crashing = requireRunning();
        postmaster = null;
        crashing.crash();
    }

    /** Stops the server with a fast shutdown and keeps its data. Open transactions are rolled back. */
    public synchronized void stop() {
        if (postmaster != null) {
            Postmaster stopping = postmaster;
            postmaster = null;
            stopping.stopFast();
        }
    }

    /**
     * Restarts the server on the same data and port, for example after a {@link #crash()} or a {@link #stop()}. Stops
     * it first if it is running. Returns when it accepts connections.
     */
    public synchronized void restart() {
        if (closed) {
            throw new IllegalStateException("the server has been closed");
        }
        stop();
        try {
            // The port may briefly be in use by an outgoing connection.
            for (int attempt = 1; ; attempt++) {
                try {
                    launch();
                    return;
                } catch (Postmaster.PortTakenException e) {
                    if (attempt == FreePorts.ATTEMPTS) {
                        throw e;
                    }
                    TimeUnit.MILLISECONDS.sleep(500);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw Postmaster.interrupted(e);
        }
    }

    /** Stops the server and removes its folder if it is temporary. Idempotent. */
    @Override
    public void close() {
        stopAndRemove();
        try {
            Runtime.getRuntime().removeShutdownHook(shutdownHook);
        } catch (IllegalStateException e) {
            // The process is exiting, and the hook has nothing left to do.
            return;
        }
    }

    private synchronized void stopAndRemove() {
        if (closed) {
            return;
        }
        closed = true;
        if (folder.isTemporary()) {
            stopImmediately();
            if (Postmaster.wasKilled(folder.data())) {
                removeSharedMemory();
            }
        }
        stop();
        standbys.forEach(folder.isTemporary() ? EmbeddedStandby::stopImmediately : EmbeddedStandby::stop);
        if (folder.isTemporary()) {
            folder.remove();
        }
    }

    /** Stops the server without a checkpoint, because its data is discarded. */
    private void stopImmediately() {
        if (postmaster != null) {
            postmaster.stopImmediately();
            postmaster = null;
        }
    }

    /** Starts a killed server once more, because only its next start removes the shared memory that it has left. */
    private void removeSharedMemory() {
        try {
            launchOnFreePort(0);
        } catch (IOException | IllegalStateException e) {
            LOGGER.log(Level.WARNING, "the shared memory of a killed server stays until it is removed by hand", e);
        }
        stopImmediately();
    }

    private synchronized void launchOnFreePort(int givenPort) throws IOException {
        port = FreePorts.launch(givenPort, candidate -> {
            port = candidate;
            launch();
        });
    }

    private void launch() throws IOException {
        var paths = new Postmaster.ServerPaths(
                folder.data(),
                folder.log(),
                folder.isTemporary() ? folder.path().toString() : "");
        postmaster = Postmaster.start(binaries, paths, HOST, port);
    }

    private void createRoleAndDatabase() {
        try (var connection = dataSource("postgres", ServerFolder.SUPERUSER, folder.superuserPassword())
                        .getConnection();
                var statement = connection.createStatement()) {
            statement.execute("SET " + ServerFolder.SCRAM_ITERATIONS);
            InitSql.run(connection, folder.password());
        } catch (SQLException e) {
            throw new IllegalStateException("init.sql failed", e);
        }
    }

    private Postmaster requireRunning() {
        if (postmaster == null) {
            throw new IllegalStateException("the server is not running");
        }
        return postmaster;
    }

    private String url(String database) {
        return "jdbc:postgresql://" + HOST + ":" + port + "/" + database;
    }

    private DataSource dataSource(String database, String user, String password) {
        var dataSource = new PGSimpleDataSource();
        dataSource.setUrl(url(database));
        dataSource.setUser(user);
        dataSource.setPassword(password);
        return dataSource;
    }
}
