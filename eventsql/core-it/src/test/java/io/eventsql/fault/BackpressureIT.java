package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import io.eventsql.internal.append.PublishContext;
import io.eventsql.internal.append.PublishListeners;
import io.eventsql.internal.append.Publisher;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.wake.WakeUp;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: while a database is unavailable, frozen or slow, memory stays bounded, and publishers wait and then fail at their
 * deadline with the correct outcome; when it recovers, publishing resumes without intervention.
 *
 * <p>Method: a proxy refuses connections or drops all traffic, or all processes of the server are stopped (SIGSTOP), while
 * more is published than the buffer holds.
 */
class BackpressureIT {
    private static final String APPEND = "SELECT eventsql.append_";

    private static EmbeddedEventsDb eventsDb;

    private final List<AutoCloseable> open = new ArrayList<>();

    @BeforeAll
    static void startDatabase() {
        eventsDb = EmbeddedEventsDb.builder().start();
    }

    @AfterAll
    static void stopDatabase() {
        eventsDb.close();
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable closeable : open.reversed()) {
            closeable.close();
        }
    }

    private <T extends AutoCloseable> T opened(T closeable) {
        open.add(closeable);
        return closeable;
    }

    private ProxiedDatabase proxied() throws SQLException {
        return opened(ProxiedDatabase.on(eventsDb));
    }

    /** A publisher whose buffer can be observed. */
    private final class ObservablePublisher implements AutoCloseable {
        final Shards shards;
        final Publisher publisher;
        private final WakeUp wakeUp;

        ObservablePublisher(DataSource pool, Settings settings, StreamSpec stream) {
            shards = Shards.open(List.of(pool), settings);
            StreamRegistry streams = new StreamRegistry(shards);
            streams.create(stream);
            wakeUp = new WakeUp(shards, settings);
            publisher = new Publisher(
                    shards,
                    null,
                    new PublishContext(
                            UUID.randomUUID(), settings, streams, new SegmentKeeper(), wakeUp, PublishListeners.none()),
                    (shard, nanos) -> {});
        }

        long bufferedBytes() {
            return publisher.buffers().getFirst().bytes();
        }

        @Override
        public void close() throws InterruptedException {
            publisher.close(System.nanoTime() + TimeUnit.SECONDS.toNanos(5));
            wakeUp.close(System.nanoTime() + TimeUnit.SECONDS.toNanos(5));
            shards.close();
        }
    }

    private enum Outage {
        REFUSED {
            @Override
            void begin(ProxiedDatabase database) {
                database.proxy().refuse();
                database.proxy().cut();
            }
        },
        BLACKHOLE {
            @Override
            void begin(ProxiedDatabase database) {
                database.proxy().blackhole();
            }
        },
        FROZEN {
            @Override
            void begin(ProxiedDatabase database) throws Exception {
                ProcessHandle server = server();
                signal("STOP", List.of(server));
                signal("STOP", server.descendants().toList()); // after the postmaster, which would start more
            }

            @Override
            void end(ProxiedDatabase database) throws Exception {
                ProcessHandle server = server();
                signal("CONT", server.descendants().toList()); // before the postmaster, while all of them still exist
                signal("CONT", List.of(server));
            }
        };

        abstract void begin(ProxiedDatabase database) throws Exception;

        void end(ProxiedDatabase database) throws Exception {
            database.proxy().heal();
        }

        private static ProcessHandle server() {
            return ProcessHandle.of(eventsDb.processId()).orElseThrow();
        }

        private static void signal(String signal, List<ProcessHandle> processes)
                throws IOException, InterruptedException {
            List<String> command = new ArrayList<>(List.of("sh", "-c", "kill -" + signal + " \"$@\"", "sh"));
            processes.forEach(process -> command.add(Long.toString(process.pid())));
            assertThat(new ProcessBuilder(command).start().waitFor()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource
    void publish_databaseUnavailable_bufferIsBoundedAndCallersFailAtTheirDeadline(Outage outage) throws Exception {
        ProxiedDatabase database = proxied();
        Settings settings = Settings.builder()
                .bufferBytes(64 << 10)
                .publishTimeout(Duration.ofSeconds(1))
                .networkTimeout(Duration.ofMillis(300))
                .maxBatchEvents(10)
                .build();
        ObservablePublisher observable = opened(new ObservablePublisher(
                database.pool(), settings, TestStreams.of("events").withPartitions(2)));
        Ledger ledger = new Ledger();
        publish(observable.publisher, ledger, "before");
        assertThat(ledger.storedCount()).isEqualTo(1);

        AtomicLong bufferedMost = new AtomicLong();
        AtomicBoolean watching = new AtomicBoolean(true);
        Thread watcher = Thread.ofPlatform().start(() -> {
            while (watching.get()) {
                bufferedMost.accumulateAndGet(observable.bufferedBytes(), Math::max);
                LockSupport.parkNanos(500_000); // it samples
            }
        });
        outage.begin(database);
        try {
            List<Thread> callers = new ArrayList<>();
            for (int caller = 0; caller < 200; caller++) { // 200 events of 1 KB: three times the buffer
                String key = caller % 2 == 0 ? "k" + caller : null;
                callers.add(Thread.ofVirtual().start(() -> {
                    for (int i = 0; i < 2; i++) {
                        publish(observable.publisher, ledger, key);
                    }
                }));
            }
            for (Thread caller : callers) {
                assertThat(caller.join(Duration.ofSeconds(30)))
                        .as("caller returns at its deadline")
                        .isTrue();
            }
        } finally {
            outage.end(database);
            watching.set(false);
            watcher.join();
        }
        System.out.println(outage + ": " + ledger + ", at most " + bufferedMost + " bytes in the buffer");
        assertThat(ledger.storedCount())
                .as("acknowledged while the database was unavailable")
                .isEqualTo(1);
        assertThat(ledger.notStoredCount()).isPositive();
        assertThat(ledger.unknownCount())
                .as("outcome unknown, for batches in flight only")
                .isLessThanOrEqualTo(2L * settings.appendConnections() * settings.maxBatchEvents());
        assertThat(bufferedMost.get()).isPositive().isLessThanOrEqualTo(settings.bufferBytes());

        await().atMost(Duration.ofSeconds(120)).until(() -> {
            long before = ledger.storedCount();
            publish(observable.publisher, ledger, "after");
            publish(observable.publisher, ledger, null);
            return ledger.storedCount() == before + 2;
        });
        await().atMost(Duration.ofSeconds(120)).until(() -> observable.bufferedBytes() == 0);
        ledger.verify(Ledger.read("events", List.of(database.direct())));
    }

    private static void publish(Publisher publisher, Ledger ledger, String key) {
        Event named = ledger.next(key);
        // The ledger identifies an event by its value; the header makes it large.
        Event event = named.withHeader("padding", "x".repeat(900));
        try {
            ledger.stored(named, publisher.publish("events", event));
        } catch (RuntimeException e) {
            ledger.failed(List.of(named), e);
        }
    }

    @Test
    void publish_connectionsRefused_failsAsNotStored() throws Exception {
        ProxiedDatabase database = proxied();
        EventSql eventSql = opened(EventSql.builder(database.pool())
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofMillis(500))
                        .build())
                .build());
        eventSql.createStream(TestStreams.of("not_sent").withPartitions(2));
        database.proxy().refuse();
        database.proxy().cut();
        await().atMost(Duration.ofSeconds(120))
                .until(() -> database.pool().getHikariPoolMXBean().getTotalConnections() == 0 || evict(database));
        for (String key : new String[] {"k", "k", "other"}) {
            assertThatThrownBy(() -> eventSql.publisher().publish("not_sent", Event.ofText(key, "e")))
                    .isInstanceOf(EventNotStoredException.class)
                    .satisfies(failure -> assertThat(failure.getStackTrace())
                            .as("stack trace with the failed call")
                            .anyMatch(frame -> frame.getClassName().startsWith(BackpressureIT.class.getName())));
        }
        database.proxy().heal();
        await().atMost(Duration.ofSeconds(120))
                .ignoreExceptions()
                .until(() -> eventSql.publisher()
                                .publish("not_sent", Event.ofText("k", "after"))
                                .offset()
                        >= 0);
        assertThat(Ledger.values(Ledger.read("not_sent", List.of(database.direct()))))
                .containsExactly("after");
    }

    private static boolean evict(ProxiedDatabase database) {
        database.pool().getHikariPoolMXBean().softEvictConnections();
        return false;
    }

    /** A write blocks once the socket buffers are full, and a read timeout does not end it. */
    @Test
    void publishAll_connectionStallsDuringLargeBatch_isResentOnAnother() throws Exception {
        ProxiedDatabase database = proxied();
        EventSql eventSql = opened(EventSql.builder(database.pool())
                .settings(Settings.builder()
                        .networkTimeout(Duration.ofSeconds(3))
                        .publishTimeout(Duration.ofSeconds(60))
                        .maxBatchBytes(32 << 20)
                        .build())
                .build());
        eventSql.createStream(TestStreams.of("big").withPartitions(1));
        database.proxy().planRequests(APPEND, number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        byte[] big = "x".repeat(1 << 20).getBytes(StandardCharsets.US_ASCII);
        List<Event> events = Stream.generate(() -> Event.of("k", big)).limit(16).toList();

        List<EventPosition> positions =
                eventSql.publisher().publishAllAsync("big", events).get(120, TimeUnit.SECONDS);

        assertThat(positions)
                .extracting(EventPosition::offset)
                .containsExactlyElementsOf(
                        IntStream.range(0, 16).mapToObj(i -> (long) i).toList());
        database.proxy().releaseHeld();
        await().atMost(Duration.ofSeconds(120)).until(() -> database.proxy().heldConnections() == 0);
        assertThat(Ledger.read("big", List.of(database.direct()))).hasSize(16);
    }

    @Test
    void publish_manyEventsWaitForOnePartition_allAreStored() throws Exception {
        ProxiedDatabase database = proxied();
        EventSql eventSql = opened(EventSql.builder(database.pool()).build());
        eventSql.createStream(TestStreams.of("one_partition").withPartitions(1));
        Ledger ledger = new Ledger();
        List<Event> events = new ArrayList<>();
        List<CompletableFuture<EventPosition>> futures = new ArrayList<>();
        for (int i = 0; i < 8_000; i++) {
            Event event = ledger.next(i % 5 == 0 ? "k" : null);
            events.add(event);
            futures.add(eventSql.publisher().publishAsync("one_partition", event));
        }
        for (int i = 0; i < events.size(); i++) {
            ledger.stored(events.get(i), futures.get(i).get(120, TimeUnit.SECONDS));
        }
        ledger.verify(Ledger.read("one_partition", List.of(database.direct())));
    }

    /** Whatever a data source throws, the publisher continues with the next calls. */
    @Test
    void publish_dataSourceThrowsError_laterCallsAreStored() throws Exception {
        ProxiedDatabase database = proxied();
        AtomicBoolean failing = new AtomicBoolean();
        DataSource faulty = new DelegatingDataSource(database.pool()) {
            @Override
            public Connection getConnection() throws SQLException {
                if (failing.get()) {
                    throw new NoClassDefFoundError("as if out of memory or half undeployed");
                }
                return super.getConnection();
            }
        };
        EventSql eventSql = opened(EventSql.builder(faulty)
                .settings(
                        Settings.builder().publishTimeout(Duration.ofSeconds(5)).build())
                .build());
        eventSql.createStream(TestStreams.of("errors").withPartitions(2));
        failing.set(true);
        for (int i = 0; i < 8; i++) { // more than there are append threads
            String key = "k" + i;
            assertThatThrownBy(() -> eventSql.publisher().publish("errors", Event.ofText(key, "bad")))
                    .isInstanceOfAny(EventNotStoredException.class, EventOutcomeUnknownException.class);
        }
        failing.set(false);
        for (int i = 0; i < 8; i++) {
            eventSql.publisher().publish("errors", Event.ofText("k" + i, "good"));
        }
        assertThat(Ledger.read("errors", List.of(database.direct())))
                .extracting(Ledger.Stored::value)
                .hasSize(8)
                .containsOnly("good");
    }
}
