package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TablesTemplate;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/**
 * Goal: while a fault lasts, retries leave no server processes behind: at most those of the pool, and one for each partition,
 * offset and outbox whose commit waits for a replica, however long the fault lasts. What no replica has stays invisible.
 *
 * <p>Method: publishers, a consumer of each kind, the relay and readers of the status run against a server on which a
 * standby is missing, rows or tables are locked, or a trigger sleeps. The test counts the server processes of the pool
 * throughout. Then the fault ends, and everything must be stored and handled once.
 *
 * <p>{@code -Deventsql.test.faultSeconds=N}: how long each fault lasts; default 6, three network timeouts.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class BackendsDuringFaultsIT {
    private static final long FAULT_SECONDS = Long.getLong("eventsql.test.faultSeconds", 6);
    private static final Duration SAMPLE_INTERVAL = Duration.ofMillis(250);
    /** Between the calls of a publisher, which wait as long as the fault lasts, and those of a reader. */
    private static final long PUBLISH_PAUSE_MS = 60;

    private static final long STATUS_PAUSE_MS = 200;

    private static final int POOL_SIZE = 12;
    private static final int PARTITIONS = 3;
    private static final int RELAYED_PARTITIONS = 2;
    /** Those of both streams, the offsets of two consumers, and the relay's row. */
    private static final int COMMITS_THAT_WAIT = PARTITIONS + RELAYED_PARTITIONS + 2 * PARTITIONS + 1;
    /** A connection that is being replaced may be counted twice. */
    private static final int REPLACED_MAX = 2;

    private static final int PUBLISHERS = 6;
    private static final Settings SETTINGS = Settings.builder()
            .networkTimeout(Duration.ofSeconds(2))
            .publishTimeout(Duration.ofSeconds(3))
            .lease(Duration.ofSeconds(4))
            .heartbeat(Duration.ofMillis(500))
            .outboxLease(Duration.ofSeconds(3))
            .maxBatchEvents(100)
            .build();

    private static final String DATABASE = "faults";

    private final List<Subscription> subscriptions = new ArrayList<>();
    private final List<Thread> load = new ArrayList<>();
    private final AtomicInteger written = new AtomicInteger();
    private EventsDb server;
    private Connection admin;
    private DataSource database;
    private HikariDataSource pool;
    /** Connections of the application, which are not counted. */
    private HikariDataSource application;

    private EventSql eventSql;
    private String orders;
    private String relayed;
    private Ledger ledger;
    private Handled handled;
    private volatile boolean loaded;
    private volatile @Nullable Throwable loadFailure;

    @BeforeAll
    void startServer() throws SQLException {
        server = EventsDb.start();
        admin = server.adminDataSource().getConnection();
        database = TablesTemplate.copy(server, DATABASE);
        Sql.execute(database, "CREATE TABLE effects (partition int, event_offset bigint)");
        pool = Pools.pool(server, server.jdbcUrl(DATABASE), config -> {
            config.setMaximumPoolSize(POOL_SIZE);
            config.addDataSourceProperty("ApplicationName", "library");
        });
        application = Pools.pool(server, server.jdbcUrl(DATABASE), config -> config.setConnectionTimeout(30_000));
        eventSql = EventSql.builder(pool).settings(SETTINGS).build();
    }

    @AfterAll
    void stopServer() throws SQLException {
        eventSql.close(Duration.ofSeconds(5));
        application.close();
        pool.close();
        admin.close();
        server.close();
    }

    @BeforeEach
    void startLoad() throws SQLException {
        orders = TestStreams.newName();
        relayed = TestStreams.newName();
        ledger = new Ledger();
        handled = new Handled();
        written.set(0);
        loadFailure = null;
        loaded = true;
        Sql.execute(database, "TRUNCATE effects");
        eventSql.createStream(TestStreams.of(orders).withPartitions(PARTITIONS));
        eventSql.createStream(TestStreams.of(relayed).withPartitions(RELAYED_PARTITIONS));
        subscriptions.add(eventSql.subscribe(ConsumerSpec.of(orders, "plain"), handled::add));
        subscriptions.add(eventSql.subscribeTransactional(
                ConsumerSpec.of(orders, "exact").withHandlerTimeout(Duration.ofSeconds(1)),
                BackendsDuringFaultsIT::storeEffect));
        for (int i = 0; i < PUBLISHERS; i++) {
            String key = "k" + i;
            repeat(() -> publish(key), PUBLISH_PAUSE_MS);
        }
        repeat(this::writeToOutbox, PUBLISH_PAUSE_MS);
        repeat(this::readStatus, STATUS_PAUSE_MS);
    }

    @AfterEach
    void endLoad() throws Exception {
        subscriptions.forEach(subscription -> subscription.close(Duration.ofSeconds(5)));
        subscriptions.clear();
        stopLoad();
    }

    private static void storeEffect(StoredEvent event, Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effects VALUES (?, ?)")) {
            insert.setInt(1, event.partition());
            insert.setLong(2, event.offset());
            insert.executeUpdate();
        }
    }

    /** Work that a fault may fail. */
    private interface Work {
        void run() throws SQLException;
    }

    private void repeat(Work work, long pauseMs) {
        load.add(Thread.ofVirtual().start(() -> {
            try {
                while (loaded) {
                    work.run();
                    TimeUnit.MILLISECONDS.sleep(pauseMs);
                }
            } catch (Throwable e) {
                loadFailure = e;
            }
        }));
    }

    private void stopLoad() throws InterruptedException {
        loaded = false;
        for (Thread thread : load) {
            thread.join();
        }
        load.clear();
        assertThat(loadFailure).isNull();
    }

    private void publish(String key) {
        Event event = ledger.next(key);
        try {
            ledger.stored(event, eventSql.publisher().publish(orders, event));
        } catch (EventSqlException e) {
            ledger.failed(List.of(event), e);
        }
    }

    /** The application's transaction, whose own commit does not wait. */
    private void writeToOutbox() {
        try (Connection connection = application.getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute("SET LOCAL synchronous_commit = local; SET LOCAL lock_timeout = '500ms'");
            int number = written.get();
            eventSql.outbox().publish(connection, relayed, Event.ofText("k" + number, "" + number));
            connection.commit();
            written.incrementAndGet();
        } catch (SQLException | EventSqlException e) {
            assertThat(e).hasStackTraceContaining("lock timeout");
        }
    }

    private void readStatus() {
        ignoringFailures(() -> eventSql.positions(orders, "plain"));
        ignoringFailures(() -> eventSql.consumers(0, 10));
        ignoringFailures(() -> eventSql.consumers());
        ignoringFailures(() -> eventSql.reportConsumers(0, 10, Duration.ofSeconds(5)));
        ignoringFailures(() -> eventSql.consumer(orders, "exact").state());
        ignoringFailures(() -> eventSql.outbox().backlogs());
        ignoringFailures(() -> eventSql.streams());
    }

    private static void ignoringFailures(Runnable status) {
        try {
            status.run();
        } catch (EventSqlException e) {
            assertThat(e).hasCauseInstanceOf(SQLException.class);
        }
    }

    private long countBackends(String condition) throws SQLException {
        return Sql.queryLong(
                admin,
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'library' AND (" + condition + ")");
    }

    /** Counts the server processes for as long as the fault lasts. */
    private void assertBackendsBounded(int beyondPool) throws Exception {
        List<Long> samples = new ArrayList<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(FAULT_SECONDS);
        while (System.nanoTime() < end) {
            samples.add(countBackends("true"));
            TimeUnit.NANOSECONDS.sleep(SAMPLE_INTERVAL.toNanos());
        }
        System.out.printf(
                "MEASURED server processes in %d s of the fault: %d at first, %d at most, %d at last%n",
                FAULT_SECONDS, samples.getFirst(), max(samples), samples.getLast());
        int lastThird = samples.size() * 2 / 3;
        assertThat(max(samples))
                .as("server processes at most; they are at %s", activity())
                .isLessThanOrEqualTo(POOL_SIZE + beyondPool);
        assertThat(max(samples.subList(lastThird, samples.size())))
                .as("constant")
                .isLessThanOrEqualTo(max(samples.subList(0, lastThird)) + REPLACED_MAX);
    }

    private List<String> activity() throws SQLException {
        return Sql.query(
                admin,
                "SELECT format('%s %s of %s', state, wait_event, query) FROM pg_stat_activity"
                        + " WHERE application_name = 'library' ORDER BY query_start");
    }

    private static long max(List<Long> samples) {
        return samples.stream().mapToLong(Long::longValue).max().orElseThrow();
    }

    /** After the fault: everything works again, and nothing was lost, duplicated or refused. */
    private void assertRecovers() throws Exception {
        long before = ledger.storedCount();
        await().atMost(Duration.ofSeconds(120)).until(() -> ledger.storedCount() > before + PUBLISHERS);
        stopLoad();
        List<Ledger.Stored> stored = Ledger.read(orders, List.of(application));
        ledger.verify(stored);
        Set<String> values = Ledger.values(stored);
        // What was published during the fault is handled one by one.
        await().atMost(Duration.ofSeconds(60 + FAULT_SECONDS)).untilAsserted(() -> {
            assertThat(handled.texts()).containsAll(values);
            assertThat(visible("effects")).isEqualTo(values.size());
            assertThat(visible("eventsql.events_" + relayed)).isEqualTo(written.get());
        });
        assertThat(Sql.queryLong(database, "SELECT count(*) FROM (SELECT DISTINCT * FROM effects) e"))
                .isEqualTo(values.size());
        assertThat(Sql.query(database, "SELECT error FROM eventsql.outbox_refused"))
                .isEmpty();
        await().atMost(Duration.ofSeconds(120)).until(() -> countBackends("true") <= POOL_SIZE);
    }

    private long visible(String table) throws SQLException {
        return Sql.queryLong(application, "SELECT count(*) FROM " + table);
    }

    private List<Long> visible() throws SQLException {
        return List.of(visible("effects"), visible("eventsql.events_" + orders), visible("eventsql.events_" + relayed));
    }

    private void awaitLoad() {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> ledger.storedCount() > 50
                        && visible("effects") > 0
                        && visible("eventsql.events_" + relayed) > 0);
    }

    @Test
    void standbyMissing_backendsAreBoundedAndNothingUnreplicatedIsVisible() throws Exception {
        awaitLoad();
        Sql.execute(
                server.adminDataSource(),
                "ALTER SYSTEM SET synchronous_standby_names = 'absent'",
                "SELECT pg_reload_conf()");
        try {
            await().atMost(Duration.ofSeconds(120)).until(() -> countBackends("wait_event = 'SyncRep'") > 0);
            List<Long> replicated = visible();
            assertBackendsBounded(COMMITS_THAT_WAIT);
            assertThat(visible()).isEqualTo(replicated);
        } finally {
            Sql.execute(
                    server.adminDataSource(),
                    "ALTER SYSTEM RESET synchronous_standby_names",
                    "SELECT pg_reload_conf()");
        }
        assertRecovers();
    }

    /** Holds locks of another session during the fault; no commit waits. */
    private void whileLocked(String... statements) throws Exception {
        awaitLoad();
        try (Connection holder = database.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            for (String sql : statements) {
                statement.execute(sql);
            }
            assertBackendsBounded(0);
            holder.rollback();
        }
        assertRecovers();
    }

    @Test
    void rowsOfPartitionsLocked_backendsAreBounded() throws Exception {
        whileLocked("""
                SELECT FROM eventsql.stream_partition
                WHERE partition = 0 OR stream_id = (SELECT stream_id FROM eventsql.stream WHERE name = '%s')
                FOR UPDATE""".formatted(orders));
    }

    @Test
    void rowsOfConsumersAndRelayLocked_backendsAreBounded() throws Exception {
        whileLocked(
                "SELECT FROM eventsql.outbox_relay FOR UPDATE",
                "SELECT FROM eventsql.consumer_member FOR UPDATE",
                "SELECT FROM eventsql.consumer_partition FOR UPDATE",
                "SELECT FROM eventsql.consumer_offset FOR UPDATE");
    }

    @Test
    void tableOfStreamAltered_backendsAreBounded() throws Exception {
        whileLocked("ALTER TABLE " + TestStreams.table(orders) + " ADD CONSTRAINT always CHECK (true)");
    }

    @Test
    void allTablesLocked_backendsAreBounded() throws Exception {
        // One after the other, like a migration that retries: waiting longer would deadlock with transactions of the
        // load.
        whileLocked("""
                DO $$
                DECLARE
                    one regclass;
                BEGIN
                    LOOP
                        BEGIN
                            SET LOCAL lock_timeout = '200ms';
                            FOR one IN
                                SELECT c.oid FROM pg_class c
                                WHERE c.relnamespace = 'eventsql'::regnamespace AND c.relkind IN ('r', 'p')
                                  AND NOT c.relispartition
                            LOOP
                                EXECUTE 'LOCK TABLE ' || one || ' IN ACCESS EXCLUSIVE MODE';
                            END LOOP;
                            EXIT;
                        EXCEPTION WHEN lock_not_available THEN
                            NULL; -- which has released the locks
                        END;
                    END LOOP;
                END $$""");
    }

    @Test
    void triggerSleeps_backendsAreBounded() throws Exception {
        awaitLoad();
        Sql.execute(
                database,
                "CREATE TABLE IF NOT EXISTS public.sleeping ()",
                "CREATE OR REPLACE FUNCTION public.sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                        + " IF EXISTS (SELECT FROM public.sleeping) THEN PERFORM pg_sleep(86400); END IF;"
                        + " RETURN NEW; END $$",
                "SET lock_timeout = '20s'",
                "CREATE TRIGGER sleep BEFORE INSERT ON " + TestStreams.table(orders)
                        + " FOR EACH ROW EXECUTE FUNCTION public.sleep()",
                "INSERT INTO public.sleeping DEFAULT VALUES");
        try {
            assertBackendsBounded(PARTITIONS);
        } finally {
            Sql.execute(database, "DELETE FROM public.sleeping");
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> Sql.queryLong(
                                    database,
                                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                            + " WHERE wait_event = 'PgSleep'")
                            == 0);
        }
        assertRecovers();
    }
}
