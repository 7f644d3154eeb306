package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.PatientOpening;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.load.PublishLoad;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: whatever happens to the connection of an append, every acknowledged event is stored exactly once and at the
 * acknowledged position, no event is stored twice, an event reported as not stored is not stored, and the events of a key
 * are stored in call order.
 *
 * <p>Method: a proxy cuts, holds and delays connections at every point of an append's request and response, at seeded
 * moments, while several callers publish in every way; then the table is compared with the outcomes that the callers got.
 *
 * <p>{@code -Deventsql.test.seconds=N} runs the random tests for N seconds each instead of 3.
 */
class AppendInDoubtIT {
    private static final String APPEND = "SELECT eventsql.append_";
    private static final long RUN_SECONDS = Long.getLong("eventsql.test.seconds", 3);
    private static EventsDb eventsDb;

    private FaultProxy proxy;
    private HikariDataSource pool;
    private EventSql eventSql;

    @BeforeAll
    static void startDatabase() {
        eventsDb = SharedServerDatabase.create();
    }

    @AfterAll
    static void stopDatabase() {
        eventsDb.close();
    }

    @BeforeEach
    void startProxy() {
        proxy = FaultProxy.to(eventsDb.jdbcUrl());
        pool = Pools.pool(eventsDb, proxy.jdbcUrl());
    }

    @AfterEach
    void close() {
        proxy.heal();
        if (eventSql != null) {
            eventSql.close(Duration.ofSeconds(5));
        }
        pool.close();
        proxy.close();
    }

    private void open(Settings.Builder settings, StreamSpec stream) {
        eventSql = PatientOpening.open(EventSql.builder(pool).settings(settings.build()), stream);
    }

    private static Settings.Builder settings() {
        return Settings.builder()
                .networkTimeout(Duration.ofSeconds(1))
                .publishTimeout(Duration.ofSeconds(60))
                .maxBatchEvents(100);
    }

    private List<Ledger.Stored> read(String stream) throws SQLException {
        return Ledger.read(stream, List.of(eventsDb.dataSource()));
    }

    @Test
    void publish_connectionsCutAtEveryPointOfAppend_storesEveryEventOnceInKeyOrder() throws Exception {
        publishWhileRequestsAreCut("cut_anywhere", APPEND);
    }

    /** Where READ COMMITTED is not the default, an append is BEGIN, the function and COMMIT. */
    @ParameterizedTest
    @ValueSource(strings = {APPEND, FaultProxy.COMMIT})
    void publish_otherDefaultIsolationAndConnectionsCut_storesEveryEventOnceInKeyOrder(String request)
            throws Exception {
        pool.close();
        pool = Pools.pool(eventsDb, proxy.jdbcUrl(), config -> {
            config.setTransactionIsolation(null);
            config.addDataSourceProperty("options", "-c default_transaction_isolation=repeatable\\ read");
        });
        publishWhileRequestsAreCut(request.equals(APPEND) ? "cut_at_append" : "cut_at_commit", request);
    }

    private void publishWhileRequestsAreCut(String stream, String request) throws Exception {
        Random random = Seeds.random("AppendInDoubtIT." + stream);
        open(settings(), TestStreams.of(stream).withPartitions(3).withSegmentSize(500));
        List<RequestFault> cuts = Stream.of(RequestFault.values())
                .filter(fault -> fault != RequestFault.HOLD_REQUEST)
                .toList();
        AtomicInteger faults = new AtomicInteger();
        proxy.planRequests(
                request,
                number -> random.nextInt(6) > 0
                        ? null
                        : cuts.get(Math.floorMod(faults.getAndIncrement() + random.nextInt(2), cuts.size())));
        Ledger ledger = new Ledger();
        PublishLoad load = new PublishLoad(eventSql.publisher(), stream, ledger);
        load.startAll(2, "k", random, 8);
        TimeUnit.SECONDS.sleep(RUN_SECONDS);
        await().atMost(Duration.ofSeconds(120)).until(() -> faults.get() > 20); // a slow machine takes longer
        load.stop();

        List<Ledger.Stored> stored = read(stream);
        System.out.println(ledger + ", " + proxy.requests() + " requests, " + faults + " of them cut");
        ledger.verify(stored);
        assertThat(ledger.storedCount())
                .as("acknowledged, with a distant deadline")
                .isEqualTo(stored.size());
        assertThat(ledger.notStoredCount() + ledger.unknownCount()).isZero();
    }

    /** Continues until some events are reported as not stored, and some as in doubt. */
    @Test
    @Timeout(300)
    void publish_databaseUnstableAndDeadlinesShort_outcomesAreCorrect() throws Exception {
        Random random = Seeds.random("AppendInDoubtIT.chaos");
        open(
                settings()
                        .networkTimeout(Duration.ofMillis(150))
                        .publishTimeout(Duration.ofMillis(250))
                        .bufferBytes(64 << 10),
                TestStreams.of("chaos").withPartitions(3).withSegmentSize(500));
        Ledger ledger = new Ledger();
        PublishLoad load = new PublishLoad(eventSql.publisher(), "chaos", ledger);
        load.startAll(2, "k", random, 15);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(RUN_SECONDS);
        while (System.nanoTime() < end || ledger.notStoredCount() == 0 || ledger.unknownCount() == 0) {
            switch (random.nextInt(5)) {
                case 0 -> proxy.cut();
                case 1 -> {
                    proxy.refuse();
                    proxy.cut();
                }
                case 2 -> proxy.blackhole();
                case 3 -> proxy.delay(Duration.ofMillis(random.nextInt(100)));
                default ->
                    proxy.planRequests(APPEND, number -> random.nextBoolean() ? RequestFault.HOLD_REQUEST : null);
            }
            TimeUnit.MILLISECONDS.sleep(random.nextInt(500));
            proxy.heal();
            TimeUnit.MILLISECONDS.sleep(random.nextInt(200));
        }
        load.stop();
        awaitNoAppendRunning();

        System.out.println(ledger);
        assertThat(ledger.storedCount()).isPositive();
        ledger.verify(read("chaos"));
    }

    /** It is on its way while its repetition is rejected, because a transaction has the key, and is stored when the key is free. */
    @Test
    void publish_keyIsReservedWhenTheBatchIsResent_lateOriginalIsNotStoredAgain() throws Exception {
        String stream = "late_original";
        open(settings(), TestStreams.of(stream).withPartitions(1).withKeyVersions());
        eventSql.publisher().publish(stream, Event.ofText("key", "first"));
        CompletableFuture<EventPosition> published;
        try (Connection transaction = pool.getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publish(transaction, stream, Event.ofText("key", "never"));
            proxy.planRequests(APPEND, number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
            published = eventSql.publisher().publishAsync(stream, Event.ofText("key", "second"));
            await().atMost(Duration.ofSeconds(120)).until(() -> proxy.requests() >= 3);
            proxy.planRequests(APPEND, number -> RequestFault.CUT_BEFORE_REQUEST);
            await().atMost(Duration.ofSeconds(120)).until(() -> proxy.requests() > 0); // the one before was answered
            transaction.rollback();
        }
        proxy.releaseHeld();
        await().atMost(Duration.ofSeconds(120)).until(() -> read(stream).size() == 2);
        proxy.planRequests(APPEND, number -> null);
        assertThat(published.get(120, TimeUnit.SECONDS).offset()).isEqualTo(1);
        assertThat(read(stream)).hasSize(2);
    }

    /** Waits until no backend executes an append, so that all late originals have ended. */
    private static void awaitNoAppendRunning() {
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            try (var connection = eventsDb.adminDataSource().getConnection();
                    var statement = connection.createStatement();
                    var row = statement.executeQuery("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
                            + " AND query LIKE '%append_v%' AND pid <> pg_backend_pid()")) {
                row.next();
                return row.getInt(1) == 0;
            }
        });
    }

    private void releaseLateOriginals() {
        assertThat(proxy.heldConnections()).isPositive();
        proxy.releaseHeld();
        await().atMost(Duration.ofSeconds(120)).until(() -> proxy.heldConnections() == 0);
        awaitNoAppendRunning();
    }

    @Test
    void publish_appendIsHeldInNetwork_isResentAndLateOriginalIsNotStoredAgain() throws Exception {
        open(
                settings().networkTimeout(Duration.ofMillis(300)),
                TestStreams.of("held").withPartitions(1));
        proxy.planRequests(APPEND, number -> number == 1 ? RequestFault.HOLD_REQUEST : null);

        EventPosition first = eventSql.publisher().publish("held", Event.ofText("k", "first"));
        assertThat(proxy.requests()).as("resent after the network timeout").isGreaterThanOrEqualTo(2);
        assertThat(first.offset()).isZero();
        releaseLateOriginals();
        EventPosition second = eventSql.publisher().publish("held", Event.ofText("k", "second"));

        assertThat(second.offset()).isEqualTo(1);
        assertThat(read("held")).extracting(Ledger.Stored::value).containsExactly("first", "second");
    }

    @Test
    void publish_lateOriginalOfAbandonedBatch_isNotStoredAfterLaterBatch() throws Exception {
        open(
                settings().networkTimeout(Duration.ofMillis(200)).publishTimeout(Duration.ofSeconds(2)),
                TestStreams.of("abandoned").withPartitions(1));
        proxy.planRequests("first_key", number -> RequestFault.HOLD_REQUEST);
        assertThatThrownBy(() -> eventSql.publisher().publish("abandoned", Event.ofText("first_key", "first")))
                .isInstanceOf(EventOutcomeUnknownException.class);
        assertThat(proxy.requests()).as("held requests").isPositive();
        publishWithRetries("abandoned", Event.ofText("k", "second"));

        releaseLateOriginals();
        publishWithRetries("abandoned", Event.ofText("k", "third"));

        assertThat(read("abandoned")).extracting(Ledger.Stored::value).containsExactly("second", "third");
    }

    /** A new connection may take longer than a short deadline; an event that was not stored may be published again. */
    private void publishWithRetries(String stream, Event event) {
        await().ignoreException(EventNotStoredException.class).until(() -> {
            eventSql.publisher().publish(stream, event);
            return true;
        });
    }

    @Test
    void publish_networkIsBlackhole_continuesWhenItRecovers() throws Exception {
        open(
                settings().networkTimeout(Duration.ofMillis(300)),
                TestStreams.of("blackhole").withPartitions(2));
        Ledger ledger = new Ledger();
        Event before = ledger.next("k");
        ledger.stored(before, eventSql.publisher().publish("blackhole", before));
        proxy.blackhole();
        List<Event> events = Stream.generate(() -> ledger.next("k")).limit(200).toList();
        List<CompletableFuture<EventPosition>> futures = events.stream()
                .map(event -> eventSql.publisher().publishAsync("blackhole", event))
                .toList();
        assertThatThrownBy(() -> futures.getFirst().get(1, TimeUnit.SECONDS))
                .as("acknowledgement while the database is unavailable")
                .isInstanceOf(TimeoutException.class);
        proxy.heal();
        for (int i = 0; i < events.size(); i++) {
            ledger.stored(events.get(i), futures.get(i).get(120, TimeUnit.SECONDS));
        }
        awaitNoAppendRunning();
        ledger.verify(read("blackhole"));
    }
}
