package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.SwitchableDataSource;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: a failure that lasts is logged when it begins and when it ends, and what is no failure is not logged as one. */
@Timeout(120)
class FailureLogIT extends ConsumerFixture {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private CapturedLog log;

    @BeforeEach
    void beginCapture() {
        log = CapturedLog.ofConsuming();
    }

    @AfterEach
    void endCapture() {
        log.close();
    }

    @Test
    void store_failsRepeatedly_isLoggedOnceAndAtItsEndWithTheNumber() throws SQLException {
        String stream = newStream(1);
        cluster.execute(
                "CREATE SEQUENCE public.tries",
                "CREATE FUNCTION public.fail_at_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                        + " IF nextval('public.tries') <= 5 THEN"
                        + " RAISE EXCEPTION 'attempt %', currval('public.tries') USING ERRCODE = '40001'; END IF;"
                        + " RETURN NEW; END $$",
                "CREATE TRIGGER fail_at_first BEFORE INSERT ON eventsql.parked_event"
                        + " FOR EACH ROW EXECUTE FUNCTION public.fail_at_first()");
        try (Subscription ignored = eventSql.subscribe(
                consumer(stream)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                        .withFailurePolicy(FailurePolicy.PARK_KEY),
                event -> {
                    throw new IllegalStateException("thrown by the test");
                })) {
            publish(stream, 0, 1, 1);
            awaitLag(stream, 0);
            await().untilAsserted(() ->
                    assertThat(log.lines("after 5 failed attempts")).hasSize(1));
        } finally {
            cluster.execute("DROP TRIGGER fail_at_first ON eventsql.parked_event");
        }
        assertThat(log.lines("Could not store")).singleElement().asString().startsWith("WARN");
    }

    /** As one whose message is computed from what no longer exists. */
    private static final class IndescribableException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        @Override
        public String getMessage() {
            throw new IllegalStateException("there is no message");
        }
    }

    /** Shown before the fix: logging failed because of it, which stopped the partition as an internal error. */
    @Test
    void handler_exceptionCannotDescribeItself_isLoggedAndTheEventRetried() {
        String stream = newStream(1);
        AtomicInteger calls = new AtomicInteger();
        Handled handled = new Handled();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void handlerFailed(
                            StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
                        throw new IndescribableException();
                    }
                })
                .build()) {
            // The circuit breaker opens at the first failure, and reports it, too.
            process.subscribe(
                    consumer(stream)
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                            .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                            .withCircuitBreaker(1),
                    event -> {
                        if (calls.incrementAndGet() <= 2) {
                            throw new IndescribableException();
                        }
                        handled.add(event);
                    });
            publish(stream, 0, 1, 1);
            handled.awaitSize(1);
            awaitLag(stream, 0);
            assertThat(process.consumer(stream, "c").parkedEvents(10)).isEmpty();
        }
        assertThat(log.lines("Handler of consumer")).hasSize(2);
        assertThat(log.lines("Consumer listener")).hasSize(2);
        assertThat(log.lines("Circuit breaker of"))
                .anySatisfy(line -> assertThat(line).startsWith("WARN").contains("opened"));
        assertThat(log.lines("Internal error")).isEmpty();
    }

    @Test
    void commit_databaseUnavailableForSeveralConsumers_isLoggedOnceAndAtItsEnd() {
        int consumers = 5;
        String stream = newStream(1);
        SwitchableDataSource database =
                new SwitchableDataSource(cluster.dataSources().getFirst());
        Handled handled = new Handled();
        try (EventSql process = EventSql.builder(database).build()) {
            for (int i = 0; i < consumers; i++) {
                process.subscribe(
                        ConsumerSpec.of(stream, "c" + i).withCommitInterval(Duration.ofMillis(500)), event -> {
                            handled.add(event);
                            if (handled.size() == consumers) {
                                database.setAvailable(false);
                            }
                        });
            }
            publish(stream, 0, 1, 1);
            handled.awaitSize(consumers);
            // Commits are repeated every second.
            await().during(Duration.ofMillis(2_500))
                    .until(() -> log.lines("Committing offsets").size() <= 1);
            database.setAvailable(true);

            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(log.lines("Committing offsets"))
                            .satisfiesExactly(
                                    begin ->
                                            assertThat(begin).startsWith("WARN").contains("failed; retrying"),
                                    end -> assertThat(end).startsWith("INFO").contains("works again after")));
        }
    }

    /** As after a restart of the database: members take their partitions anew. */
    @Test
    void fetch_incarnationChanged_isNoFailure() throws SQLException {
        String stream = newStream(1);
        Handled handled = new Handled();
        try (EventSql process = cluster.open();
                Subscription ignored = process.subscribe(consumer(stream), handled::add)) {
            publish(stream, 0, 10, 1);
            handled.awaitSize(10);
            awaitLag(stream, 0);
            cluster.execute("SELECT eventsql.declare_restored('test')");
            publish(stream, 10, 20, 1);

            handled.awaitSize(20).assertOnceAndInOrder();
        }
        assertThat(log.lines()).noneMatch(line -> line.startsWith("WARN Fetching"));
    }

    /** One key is stuck, so the others reach the end of the window. */
    @Test
    void window_isFullFor10Seconds_isReportedUntilItContinues() throws Exception {
        String stream = newStream(1);
        List<String> reports = new CopyOnWriteArrayList<>();
        CountDownLatch release = new CountDownLatch(1);
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void handlingBlocked(ConsumerPartition partition, long committedOffset) {
                        reports.add("blocked at " + partition.partition() + "/" + committedOffset);
                    }

                    @Override
                    public void handlingContinued(ConsumerPartition partition) {
                        reports.add("continued " + partition.partition());
                    }
                })
                .build()) {
            process.subscribe(consumer(stream).withKeyConcurrency(4).withMaxEventsAhead(50), event -> {
                if (event.offset() == 0) {
                    release.await();
                }
            });
            publish(stream, 0, 200, 10);

            await().atMost(DEADLINE).untilAsserted(() -> assertThat(reports).containsExactly("blocked at 0/0"));
            release.countDown();
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(reports).containsExactly("blocked at 0/0", "continued 0"));
            awaitLag(stream, 0);
        }
    }
}
