package io.eventsql.eventsdb;

import java.io.IOException;
import java.io.UncheckedIOException;
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
 * A PostgreSQL server of this process, from the binaries on the class path. It listens on the loopback address only, and
 * it ends with this process, however that ends. It can be crashed and started again on the same data and port.
 * Thread-safe.
 */
public final class EmbeddedEventsDb implements EventsDb {

    static final String HOST = "127.0.0.1";

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

    private EmbeddedEventsDb(Builder builder, ServerFolder folder) {
        this.binaries = PostgresBinaries.unpack();
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

    /** What a server is started with. Not thread-safe. */
    public static final class Builder {

        private int port;
        private @Nullable Path dataFolder;
        private boolean durable = true;
        private boolean stopsAtExit = true;
        private int recycledWalMegabytes;
        private StandbyMode standbys = StandbyMode.NONE;
        private final Map<String, String> settings = new LinkedHashMap<>();

        private Builder() {}

        /** The TCP port on the loopback address; 0, the default, takes a free one. */
        public Builder port(int port) {
            if (port < 0 || port > 65535) {
                throw new IllegalArgumentException("not a port: " + port);
            }
            this.port = port;
            return this;
        }

        /**
         * A folder that is kept at close, and used again where it holds the data of an earlier start. Without one, a
         * temporary folder is made, and removed at close.
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

        /** Whether commits survive a power cut; true by default. False only for tests that do not need it. */
        public Builder durable(boolean durable) {
            this.durable = durable;
            return this;
        }

        /**
         * Whether the server is stopped as soon as this JVM begins to exit; true by default. False where somebody else
         * calls {@link EmbeddedEventsDb#close()} then: shutdown hooks run at the same time, and what still uses the server
         * must be closed first.
         */
        public Builder stopsAtExit(boolean stopsAtExit) {
            this.stopsAtExit = stopsAtExit;
            return this;
        }

        /**
         * Megabytes of WAL files that a new server has ready, as one that has been in use has; 0, the default, to 2,000.
         * Making them takes seconds. For benchmarks of a steady state.
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
         * Servers that keep a copy, each on a free port and with the same settings; none by default. All of them run and
         * stream when the start returns.
         */
        public Builder standbys(StandbyMode standbys) {
            this.standbys = standbys;
            return this;
        }

        /**
         * Starts the server and creates role and database.
         *
         * @throws IllegalStateException if the server does not start, or is not durable though it should be
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
        var folder = ServerFolder.open(builder.dataFolder);
        var eventsDb = new EmbeddedEventsDb(builder, folder);
        if (builder.stopsAtExit) {
            Runtime.getRuntime().addShutdownHook(eventsDb.shutdownHook);
        }
        try {
            if (folder.isNew()) {
                folder.createCluster(eventsDb.binaries);
            }
            Files.writeString(folder.data().resolve("postgresql.conf"), eventsDb.conf.text());
            if (folder.isNew() || eventsDb.standbys.isEmpty()) {
                eventsDb.launchOnFreePort(builder.port);
            }
            if (folder.isNew()) {
                eventsDb.createRoleAndDatabase();
                folder.finish();
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

    /** Commits wait for standbys only once these are there: nothing could be made before. */
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

    /** The servers that keep a copy, in the order of their names; those of {@link Builder#standbys}. */
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

    /** The folder with the data and the server's log. */
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
     * The process id of the postmaster, whose children are all other processes of the server.
     *
     * @throws IllegalStateException if the server does not run
     */
    public synchronized long processId() {
        return running().processId();
    }

    /**
     * Kills every process of the server at once, as a crash of the machine would, except that what was given to the
     * operating system stays. Returns when all are gone.
     *
     * @throws IllegalStateException if the server does not run
     */
    public synchronized void crash() {
        Postmaster crashing = running();
        postmaster = null;
        crashing.crash();
    }

    /** Stops the server in an orderly way and keeps its data. Open transactions are rolled back. */
    public synchronized void stop() {
        if (postmaster != null) {
            Postmaster stopping = postmaster;
            postmaster = null;
            stopping.stopOrderly();
        }
    }

    /**
     * Starts the server again on the same data and port, after a {@link #crash()} or a {@link #stop()}; stops it first
     * where it runs. Returns when it accepts connections.
     */
    public synchronized void restart() {
        if (closed) {
            throw new IllegalStateException("the server has been closed");
        }
        stop();
        try {
            // The port may briefly serve as somebody's outgoing one.
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

    /** Stops the server, and removes its folder where it is a temporary one. Does nothing the second time. */
    @Override
    public void close() {
        stopAndRemove();
        try {
            Runtime.getRuntime().removeShutdownHook(shutdownHook);
        } catch (IllegalStateException e) {
            // The process is ending; the hook has nothing left to do.
            return;
        }
    }

    private synchronized void stopAndRemove() {
        if (closed) {
            return;
        }
        closed = true;
        if (postmaster != null && folder.isTemporary()) {
            // The data is thrown away, so no checkpoint.
            postmaster.stopImmediately();
            postmaster = null;
        }
        stop();
        standbys.forEach(folder.isTemporary() ? EmbeddedStandby::stopImmediately : EmbeddedStandby::stop);
        if (folder.isTemporary()) {
            folder.remove();
        }
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

    private Postmaster running() {
        if (postmaster == null) {
            throw new IllegalStateException("the server does not run");
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
