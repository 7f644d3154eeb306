package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import io.eventsql.Settings;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/**
 * Goal: no Error and no interrupt of foreign code ends a thread of the publishing side. Method: a data source and listeners
 * that throw Errors and leave interrupts on each thread they run on; then each thread must still do its work.
 */
class PublishingThreadsIT extends PublishFixture {
    private static final List<String> THREADS =
            List.of("eventsql-append", "eventsql-notify", "eventsql-listen", "eventsql-background");
    private static final int FAULTS = 3;

    /** Throws Errors on the threads under test, then interrupts them. */
    private static final class FaultyDataSource extends DelegatingDataSource {
        private final Map<String, AtomicInteger> calls = new ConcurrentHashMap<>();
        private volatile boolean faulty;

        FaultyDataSource(DataSource delegate) {
            super(delegate);
        }

        @Override
        public Connection getConnection() throws SQLException {
            String thread = Thread.currentThread().getName();
            for (String name : THREADS) {
                if (faulty && thread.startsWith(name)) {
                    int call = calls.computeIfAbsent(name, n -> new AtomicInteger())
                            .incrementAndGet();
                    if (call == 1) {
                        throw new NoClassDefFoundError("thrown by the test");
                    } else if (call <= FAULTS) {
                        Thread.currentThread().interrupt();
                    }
                }
            }
            return super.getConnection();
        }

        int faults(String thread) {
            AtomicInteger count = calls.get(thread);
            return count == null ? 0 : count.get();
        }
    }

    @Test
    void publish_dataSourceThrowsErrorsAndInterrupts_allThreadsGoOn() {
        FaultyDataSource ofPublisher = new FaultyDataSource(dataSource());
        FaultyDataSource ofConsumer = new FaultyDataSource(dataSource());
        EventSql publishing = open(ofPublisher, settings().appendConnections(1));
        EventSql consuming = open(ofConsumer, settings().pollInterval(Settings.DEFAULT_POLL_INTERVAL));
        publishing.createStream(TestStreams.of("threads").withPartitions(1).withSegmentSize(100));
        Queue<String> handled = new ConcurrentLinkedQueue<>();
        ofConsumer.faulty = true;
        consuming.subscribe(ConsumerSpec.of("threads", "reader"), event -> handled.add(event.text()));
        ofPublisher.faulty = true;

        AtomicInteger stored = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        await().atMost(Duration.ofSeconds(SECONDS_MAX))
                .pollInterval(Duration.ofMillis(5))
                .until(() -> {
                    try {
                        publishing.publisher().publish("threads", Event.ofText("k", "event " + stored.get()));
                        stored.incrementAndGet();
                    } catch (EventNotStoredException e) {
                        failed.incrementAndGet();
                    }
                    return stored.get() >= 500
                            && ofPublisher.faults("eventsql-append") > FAULTS
                            && ofPublisher.faults("eventsql-notify") > FAULTS
                            && ofPublisher.faults("eventsql-background") > FAULTS
                            && ofConsumer.faults("eventsql-listen") > 1;
                });

        assertThat(failed).hasValue(1);
        await().atMost(Duration.ofSeconds(SECONDS_MAX))
                .untilAsserted(() -> assertThat(handled).hasSize(stored.get()));
    }

    /** Throws Errors and leaves interrupts in every callback. */
    private static final class FaultyListener implements PublishListener {
        private final AtomicInteger callbacks = new AtomicInteger();

        @Override
        public void appended(Appended batch) {
            fail();
        }

        @Override
        public void appendFailed(int shard, Throwable error) {
            fail();
        }

        @Override
        public void callFailed(String stream, int events, EventSqlException error) {
            fail();
        }

        private void fail() {
            Thread.currentThread().interrupt();
            if (callbacks.incrementAndGet() % 2 == 0) {
                throw new StackOverflowError("thrown by the test");
            }
        }
    }

    @Test
    void publish_listenerThrowsErrorsAndInterrupts_everyCallbackIsCalled() throws Exception {
        FaultyListener faulty = new FaultyListener();
        try (EventSql eventSql = EventSql.builder(dataSource())
                .settings(settings().build())
                .publishListener(faulty)
                .publishListener(recorder)
                .build()) {
            String stream = newStream(eventSql, 1);
            createTrigger(stream, "RAISE EXCEPTION 'no bad events'");
            for (int i = 0; i < 10; i++) {
                assertThatCode(() -> eventSql.publisher().publish(stream, Event.ofText("k", "good")))
                        .doesNotThrowAnyException();
                assertThat(failureOf(publish(eventSql, stream, "k", "bad"))).isNotNull();
            }
            await().untilAsserted(() -> assertThat(recorder.failedAppends).hasSize(10)); // called after the faulty one
            assertThat(faulty.callbacks).hasValue(30);
        }
    }

    @Test
    void publish_listenerBlocks_publishingAndDeadlinesGoOn() throws Exception {
        CountDownLatch testEnds = new CountDownLatch(1);
        PublishListener blocking = new PublishListener() {
            @Override
            public void appended(Appended batch) {
                try {
                    testEnds.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        };
        EventSql eventSql = EventSql.builder(dataSource())
                .settings(settings().publishTimeout(Duration.ofSeconds(2)).build())
                .publishListener(blocking)
                .build();
        try {
            String stream = newStream(eventSql, 2);
            for (int i = 0; i < 100; i++) {
                eventSql.publisher().publish(stream, Event.ofText("k" + i, "good"));
            }
            whilePartitionsAreLocked(() -> assertThat(failureOf(publish(eventSql, stream, "k", "late")))
                    .isInstanceOf(EventSqlException.class));
        } finally {
            testEnds.countDown();
            eventSql.close();
        }
    }
}
