package io.eventsql.runner.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class CallGroupsTest {
    private final List<List<Event>> written = new CopyOnWriteArrayList<>();
    private final CountDownLatch first = new CountDownLatch(1);
    private final CountDownLatch goOn = new CountDownLatch(1);

    @Test
    void submit_whileTheFirstCallIsWritten_restIsOneGroup() throws Exception {
        try (CallGroups groups = new CallGroups(1, 100, this::write)) {
            CompletableFuture<?> begun = groups.submit(List.of(event(0)));
            first.await();
            List<CompletableFuture<?>> waiting = IntStream.range(1, 10)
                    .<CompletableFuture<?>>mapToObj(i -> groups.submit(List.of(event(i))))
                    .toList();
            goOn.countDown();
            begun.join();
            waiting.forEach(CompletableFuture::join);
        }

        assertThat(written)
                .containsExactly(
                        List.of(event(0)),
                        IntStream.range(1, 10).mapToObj(CallGroupsTest::event).toList());
    }

    @Test
    void submit_groupsOfOne_eachCallIsWrittenAlone() {
        goOn.countDown();
        try (CallGroups groups = new CallGroups(1, 1, this::write)) {
            IntStream.range(0, 5).forEach(i -> groups.submit(List.of(event(i))));
        }

        assertThat(written).hasSize(5).allSatisfy(group -> assertThat(group).hasSize(1));
    }

    @Test
    void submit_writerFails_callFailsAndTheLaneGoesOn() {
        goOn.countDown();
        try (CallGroups groups = new CallGroups(1, 1, events -> {
            if (events.contains(event(0))) {
                throw new IllegalStateException("refused");
            }
            write(events);
        })) {
            CompletableFuture<?> refused = groups.submit(List.of(event(0)));
            groups.submit(List.of(event(1))).join();

            assertThatThrownBy(refused::join)
                    .isInstanceOf(CompletionException.class)
                    .hasMessageContaining("refused");
        }
        assertThat(written).containsExactly(List.of(event(1)));
    }

    @Test
    void target_notGrouped_writesACallThatWaitsOnTheThreadOfItsCaller() {
        Thread caller = Thread.currentThread();
        List<Thread> writers = new CopyOnWriteArrayList<>();
        try (CallGroups groups = new CallGroups(1, 100, events -> writers.add(Thread.currentThread()))) {
            groups.target(false).publish(List.of(event(0)));
            groups.target(true).publish(List.of(event(1)));
            groups.target(false)
                    .publishAsync(List.of(event(2)))
                    .toCompletableFuture()
                    .join();
        }

        assertThat(writers).hasSize(3).startsWith(caller);
        assertThat(writers.subList(1, 3)).doesNotContain(caller);
    }

    @Test
    void target_writerFailsWithACheckedException_isWrapped() {
        try (CallGroups groups = new CallGroups(1, 1, events -> {
            throw new IOException("refused");
        })) {
            assertThatThrownBy(() -> groups.target(false).publish(List.of(event(0))))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("Publishing failed: refused");
        }
    }

    private void write(List<Event> events) throws InterruptedException {
        first.countDown();
        goOn.await();
        written.add(List.copyOf(events));
    }

    private static Event event(int number) {
        return Event.ofText("event " + number);
    }
}
