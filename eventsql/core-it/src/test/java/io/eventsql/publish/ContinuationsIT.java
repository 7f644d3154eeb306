package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: what the application attaches to the futures of {@code publishAsync} may block, publish and throw: appends, deadlines
 * and other continuations keep running. Method: continuations that block until the end of the test, or on other calls.
 */
class ContinuationsIT extends PublishFixture {
    private final CountDownLatch testEnds = new CountDownLatch(1);
    private final Thread test = Thread.currentThread();

    @AfterEach
    void releaseContinuations() {
        testEnds.countDown();
    }

    /** Not if the future was complete before this was attached to it. */
    private void block() {
        if (Thread.currentThread() == test) {
            return;
        }
        try {
            testEnds.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void publishAsync_continuationsBlock_allPartitionsGoOn() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 4);
        List<CompletableFuture<Void>> blocked = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            blocked.add(publish(eventSql, stream, "k" + i, "first").thenRun(this::block));
        }
        for (int i = 0; i < 20; i++) {
            eventSql.publisher().publish(stream, Event.ofText("k" + i, "second"));
        }
        List<CompletableFuture<EventPosition>> later = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            later.add(publish(eventSql, stream, "k" + i, "third"));
        }

        for (CompletableFuture<EventPosition> future : later) {
            get(future);
        }

        assertThat(blocked).noneMatch(CompletableFuture::isDone);
        assertThat(storedValues(stream)).hasSize(60);
    }

    @Test
    void publishAsync_continuationAwaitsLaterCallOfItsBatch_bothComplete() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 1);
        List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
        CompletableFuture<EventPosition> last = new CompletableFuture<>();
        List<CompletableFuture<EventPosition>> dependent = new ArrayList<>();
        whilePartitionsAreLocked(() -> {
            for (int i = 0; i < 10; i++) {
                CompletableFuture<EventPosition> call = publish(eventSql, stream, "k", "event " + i);
                calls.add(call);
                dependent.add(call.thenApply(position -> last.join()));
            }
            publish(eventSql, stream, "k", "last").thenAccept(last::complete);
        });

        for (CompletableFuture<EventPosition> future : dependent) {
            assertThat(get(future).offset()).isEqualTo(10);
        }
    }

    @Test
    void publishAsync_continuationsPublish_areStoredInTurn() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 2);

        CompletableFuture<EventPosition> chain = publish(eventSql, stream, "k", "0");
        for (int i = 1; i <= 10; i++) {
            String value = Integer.toString(i);
            chain = chain.thenApply(position -> eventSql.publisher().publish(stream, Event.ofText("k", value)));
        }

        assertThat(get(chain).offset()).isEqualTo(10);
    }

    @Test
    void publishAsync_manyCallsOfOneKey_completeInCallOrder() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 2);
        List<Long> offsets = new CopyOnWriteArrayList<>();
        List<CompletableFuture<Void>> calls = new ArrayList<>();
        for (int i = 0; i < 2_000; i++) {
            calls.add(publish(eventSql, stream, "k", "e" + i).thenAccept(position -> offsets.add(position.offset())));
        }
        for (CompletableFuture<Void> call : calls) {
            get(call);
        }
        assertThat(offsets).hasSize(2_000).isSorted();
    }

    /** Each failed call publishes again in its continuation and waits for that, which also fails at its deadline. */
    @Test
    void publishAsync_failedCallsPublishAgain_deadlinesStillExpire() throws Exception {
        EventSql eventSql = open(dataSource(), settings().publishTimeout(Duration.ofMillis(500)));
        String stream = newStream(eventSql, 2);
        whilePartitionsAreLocked(() -> {
            List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                String key = "k" + i;
                calls.add(publish(eventSql, stream, key, "first")
                        .exceptionally(e -> eventSql.publisher().publish(stream, Event.ofText(key, "again"))));
            }
            for (CompletableFuture<EventPosition> call : calls) {
                assertThat(failureOf(call))
                        .isInstanceOfAny(EventOutcomeUnknownException.class, EventNotStoredException.class);
            }
        });
    }

    @Test
    void close_continuationsBlock_completesAllFutures() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 2);
        List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            CompletableFuture<EventPosition> call = publish(eventSql, stream, "k" + i, "event");
            calls.add(call);
            call.thenRun(this::block);
        }

        eventSql.close(Duration.ofSeconds(5));

        await().untilAsserted(() -> assertThat(calls).allMatch(CompletableFuture::isDone));
    }
}
