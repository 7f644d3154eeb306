package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.MigrationFiles;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.check.Acknowledgement;
import io.eventsql.fixture.check.HandledRecords;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.check.LossCheck;
import io.eventsql.fixture.load.OutboxLoad;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.LibraryVersion;
import io.eventsql.fixture.process.MemberProcess;
import io.eventsql.fixture.process.OutboxProcess;
import io.eventsql.fixture.process.PublisherProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: while an application is deployed, processes with the previous version of the library and with this one work on the
 * same databases: no event is lost or stored twice, events of a key stay in order, and everything is handled.
 *
 * <p>Method: processes of the previous version create the schema, events, consumers, parked events and an outbox backlog. A
 * process of this version migrates. Then members of the same consumer, publishers and relays of both versions run, and are
 * killed and replaced by processes of the same version. Segments are small, so both add many of them. At the end only this
 * version is left.
 *
 * <p>{@code scripts/rolling_deployment.bash} builds the previous version and runs this test.
 */
@EnabledIfSystemProperty(
        named = RollingDeploymentIT.LIBRARY,
        matches = ".+",
        disabledReason = "scripts/rolling_deployment.bash builds the previous version of the library and runs it")
@Timeout(600)
class RollingDeploymentIT {
    /** The system property with the jar of the previous version. */
    static final String LIBRARY = "eventsql.test.previousLibrary";

    private static final long SECONDS = Long.getLong("eventsql.test.deploymentSeconds", 40);
    private static final String STREAM = "orders";
    private static final String CONSUMER = "handling";
    private static final String PARKING = "parking";
    private static final int PARTITIONS = 4;
    private static final int KILL_INTERVAL_MS_MIN = 1_000;
    private static final int KILL_INTERVAL_MS_MAX = 3_000;
    private static final int PUBLISH_PAUSE_MS_MAX = 200;
    private static final int BACKLOG_EVENTS = 50;

    /** The schema version since which the library adds segments by another function than before. */
    private static final int CATALOG_VERSION = 8;

    @TempDir
    private Path folder;

    private final Random random = Seeds.random("RollingDeploymentIT");
    private final long startNanos = System.nanoTime();
    private final List<Path> acknowledgements = new ArrayList<>();
    private final List<Service> services = new ArrayList<>();
    private int names;
    private EventsDb server;
    private HikariDataSource shard;
    private HikariDataSource standalone;
    private LibraryVersion previous;
    private long previousVersion;

    /** What a process does. */
    private enum Role {
        MEMBER,
        PUBLISHER,
        RELAY
    }

    /** A place in the deployment; its process is replaced when it is killed. */
    private final class Service {
        final Role role;
        final LibraryVersion version;
        String name = "";
        MemberProcess member;
        ChildProcess process;

        Service(Role role, LibraryVersion version) throws Exception {
            this.role = role;
            this.version = version;
            services.add(this);
            start();
        }

        private void start() throws Exception {
            name = role.name().toLowerCase(Locale.ROOT).charAt(0) + Integer.toString(++names);
            switch (role) {
                case MEMBER -> {
                    member = startMember(version, name, CONSUMER, Map.of());
                    member.awaitLine("READY");
                }
                case PUBLISHER -> {
                    Path file = folder.resolve("acknowledged-" + name);
                    acknowledgements.add(file);
                    run(PublisherProcess.class, publisherArguments(file));
                }
                case RELAY -> run(OutboxProcess.class, relayArguments());
            }
        }

        private List<String> publisherArguments(Path file) {
            return List.of(
                    shard.getJdbcUrl(),
                    server.username(),
                    server.password(),
                    STREAM,
                    name,
                    file.toString(),
                    Long.toString(random.nextLong()),
                    Integer.toString(PUBLISH_PAUSE_MS_MAX));
        }

        private List<String> relayArguments() {
            return List.of(
                    server.username(),
                    server.password(),
                    shard.getJdbcUrl(),
                    standalone.getJdbcUrl(),
                    shard.getJdbcUrl() + "," + standalone.getJdbcUrl(),
                    STREAM,
                    name,
                    Long.toString(random.nextLong()));
        }

        private void run(Class<?> mainClass, List<String> arguments) throws IOException {
            process = new ChildProcess(version, folder, mainClass, arguments);
            process.awaitLine("READY");
        }

        void kill() throws InterruptedException {
            if (role == Role.MEMBER) {
                member.kill();
            } else {
                process.kill();
            }
        }

        void replace() throws Exception {
            kill();
            String former = name;
            start();
            progress("killed " + former + " (" + version + " version), started " + name);
        }

        void close() {
            if (role == Role.MEMBER && member != null) {
                member.destroy();
            } else if (process != null) {
                process.close();
            }
        }
    }

    @BeforeEach
    void startServer() throws Exception {
        previous = LibraryVersion.of(
                Path.of(System.getProperty(LIBRARY)).toAbsolutePath(),
                Files.createDirectory(folder.resolve("previous")));
        server = EmbeddedEventsDb.builder()
                .setting("max_connections", "300")
                .setting("track_functions", "pl")
                .start();
        shard = pool("shard");
        standalone = pool("standalone");
        for (DataSource database : databases()) {
            Sql.execute(database, OutboxLoad.TABLE);
        }
    }

    private HikariDataSource pool(String database) {
        return Pools.pool(server, ((PGSimpleDataSource) server.createDatabase(database)).getUrl());
    }

    @AfterEach
    void stopServer() {
        services.forEach(Service::close);
        shard.close();
        standalone.close();
        server.close();
    }

    private List<DataSource> databases() {
        return List.of(shard, standalone);
    }

    private MemberProcess startMember(LibraryVersion version, String name, String consumer, Map<String, String> more)
            throws IOException {
        Map<String, String> options = new LinkedHashMap<>(Map.of(
                "url",
                shard.getJdbcUrl(),
                "user",
                server.username(),
                "password",
                server.password(),
                "stream",
                STREAM,
                "folder",
                folder.toString(),
                "name",
                name,
                "members",
                consumer + ":" + HandlerMode.SINGLE,
                "leaseMs",
                "2000",
                "heartbeatMs",
                "400",
                "connections",
                "8"));
        options.putAll(more);
        return MemberProcess.start(version, options);
    }

    @Test
    void bothVersions_publishConsumeRelayAndAddSegments_nothingIsLostRepeatedOrOutOfOrder() throws Exception {
        createStreamByPreviousVersion();
        Service member = new Service(Role.MEMBER, previous);
        new Service(Role.PUBLISHER, previous);
        parkKeysByPreviousVersion();
        try (Connection ofShard = shard.getConnection();
                Connection ofStandalone = standalone.getConnection()) {
            writeBacklogByPreviousVersion(List.of(ofShard, ofStandalone));
            new Service(Role.MEMBER, LibraryVersion.CURRENT); // migrates
            assertThat(schemaVersion()).as("schema version").isEqualTo(MigrationFiles.newestVersion());
            assertThat(backlog()).as("outbox backlog after the migration").isGreaterThanOrEqualTo(BACKLOG_EVENTS);
            progress("the schema has version " + schemaVersion());
            ofShard.rollback();
            ofStandalone.rollback();
        }
        long addedByPrevious = calls("add_segment_v1");
        long added = calls("ensure_segments_v1");
        long segments = segments();
        new Service(Role.PUBLISHER, LibraryVersion.CURRENT);
        new Service(Role.RELAY, previous);
        new Service(Role.RELAY, LibraryVersion.CURRENT);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        for (int kill = 0; System.nanoTime() - end < 0; kill++) {
            TimeUnit.MILLISECONDS.sleep(random.nextInt(KILL_INTERVAL_MS_MIN, KILL_INTERVAL_MS_MAX));
            (kill % 2 == 0 ? member : services.get(random.nextInt(services.size()))).replace();
        }

        stopWriting();
        addedByPrevious = calls("add_segment_v1") - addedByPrevious;
        added = calls("ensure_segments_v1") - added;
        progress("segments were added by " + addedByPrevious + " calls of add_segment_v1 and "
                + (added - addedByPrevious) + " of ensure_segments_v1");
        assertThat(segments() - segments).as("segments added by both").isGreaterThan(24);
        if (previousVersion < CATALOG_VERSION) {
            assertThat(addedByPrevious).as("calls of add_segment_v1").isPositive();
        }
        assertThat(added - addedByPrevious).as("calls of ensure_segments_v1").isPositive();
        completeDeployment();
        verify();
    }

    private void createStreamByPreviousVersion() throws Exception {
        MemberProcess creating = startMember(
                previous,
                "creating",
                PARKING,
                Map.of("partitions", Integer.toString(PARTITIONS), "segmentSize", "100"));
        creating.awaitLine("READY");
        previousVersion = schemaVersion();
        creating.close();
        progress("the previous version has created schema " + previousVersion + " and the stream");
    }

    private void parkKeysByPreviousVersion() throws Exception {
        MemberProcess parking = startMember(previous, "parking", PARKING, Map.of("parking", PARKING));
        awaitThat("keys are parked", () -> count(shard, "eventsql.parked_event") > 20);
        parking.close();
        progress(count(shard, "eventsql.parked_event") + " events are parked");
    }

    /** @param blockers connections whose transactions keep the relays waiting */
    private void writeBacklogByPreviousVersion(List<Connection> blockers) throws Exception {
        for (Connection blocker : blockers) {
            blocker.setAutoCommit(false);
        }
        // The first relay creates the tables of the standalone outbox.
        Service relay = new Service(Role.RELAY, previous);
        for (Connection blocker : blockers) {
            Sql.query(blocker, "SELECT 1 FROM eventsql.outbox_relay FOR UPDATE");
        }
        awaitThat("there is a backlog", () -> backlog() >= BACKLOG_EVENTS);
        relay.kill();
        services.remove(relay);
        progress(backlog() + " events wait in outboxes");
    }

    private void stopWriting() throws Exception {
        for (Service service : List.copyOf(services)) {
            if (service.role != Role.MEMBER) {
                service.process.finish();
                services.remove(service);
            }
        }
        progress("publishers and relays have ended");
    }

    /** Closes the members of the previous version; those of this one handle the rest. */
    private void completeDeployment() throws Exception {
        for (Service service : List.copyOf(services)) {
            if (service.version == previous) {
                service.member.close();
                services.remove(service);
            }
        }
        try (EventSql eventSql = EventSql.builder(shard).outbox(standalone).build()) {
            OutboxLoad.awaitRelayed(eventSql.outbox());
            awaitHandled(eventSql, CONSUMER);
            MemberProcess redriving = startMember(LibraryVersion.CURRENT, "redriving", PARKING, Map.of());
            awaitHandled(eventSql, PARKING);
            awaitThat("no events are parked", () -> {
                eventSql.consumer(STREAM, PARKING).redrive();
                return count(shard, "eventsql.parked_event") == 0;
            });
            redriving.close();
        }
        for (Service service : services) {
            service.member.close();
        }
        progress("everything is handled");
    }

    private static void awaitHandled(EventSql eventSql, String consumer) {
        awaitThat(
                consumer + " has handled everything",
                () -> eventSql.positions(STREAM, consumer).stream().allMatch(position -> position.lag() == 0));
    }

    private void verify() throws Exception {
        List<Acknowledgement> acknowledged = new ArrayList<>();
        for (Path file : acknowledgements) {
            acknowledged.addAll(Acknowledgement.read(file));
        }
        List<Ledger.Stored> stored = Ledger.read(STREAM, List.of(shard));
        LossCheck.verify(stored, acknowledged, List.of());
        Set<String> bills = new HashSet<>();
        for (DataSource database : databases()) {
            bills.addAll(Sql.query(database, "SELECT name FROM bill"));
            assertThat(count(database, "eventsql.outbox_refused")).isZero();
        }
        assertThat(stored.stream()
                        .map(Ledger.Stored::value)
                        .filter(value -> value.startsWith("r") || value.startsWith("-r"))
                        .collect(Collectors.toSet()))
                .as("committed with the application's rows")
                .isEqualTo(bills);
        HandledRecords.read(folder.resolve(CONSUMER)).verify(stored, HandlerMode.SINGLE);
        HandledRecords.read(folder.resolve(PARKING)).verifyEveryKey(stored);
        assertThat(Sql.query(shard, "SELECT table_name FROM eventsql.segment ORDER BY 1"))
                .as("the catalog names the tables")
                .isEqualTo(Sql.query(
                        shard,
                        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                                + " WHERE c.relkind = 'r' AND c.relname LIKE 'events\\_%' ORDER BY 1"));
        progress(stored.size() + " events in " + segments() + " segments: " + acknowledged.size() + " acknowledged, "
                + bills.size() + " through outboxes; 0 lost, 0 stored twice, all in order and handled");
    }

    private long schemaVersion() throws SQLException {
        return Sql.queryLong(shard, "SELECT max(version) FROM eventsql.schema_version");
    }

    private long backlog() throws SQLException {
        return count(shard, "eventsql.outbox") + count(standalone, "eventsql.outbox");
    }

    private long segments() throws SQLException {
        return count(shard, "eventsql.segment");
    }

    private static long count(DataSource database, String table) throws SQLException {
        return Sql.queryLong(database, "SELECT count(*) FROM " + table);
    }

    /** Returns how often a function was called; {@code add_segment_v1} of the previous version calls the other one. */
    private long calls(String function) throws SQLException {
        return Sql.queryLong(
                shard,
                "SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = '" + function + "'");
    }

    private static void awaitThat(String what, Callable<Boolean> condition) {
        await().alias(what)
                .atMost(Duration.ofSeconds(120))
                .pollInterval(Duration.ofMillis(50))
                .until(condition);
    }

    private void progress(String what) {
        System.out.printf("%3d s: %s%n", TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - startNanos), what);
    }
}
