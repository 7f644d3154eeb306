package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Handlers that throw: their events are retried in order, and the member continues. */
abstract class FailingHandlersContract extends Contract {
    FailingHandlersContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void subscribe_handlerThrows_eventIsRetriedInOrder() {
        String stream = newStream();
        publishTexts(stream, 0, 150);
        Map<EventPosition, Integer> failures = new HashMap<>();
        Handled tried = new Handled();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            tried.add(event);
            boolean fail;
            synchronized (failures) {
                fail = Integer.parseInt(event.text()) % 25 == 0
                        && failures.merge(event.position(), 1, Integer::sum) <= 2;
            }
            if (fail) {
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        })) {
            handled.awaitSize(150).assertOnceAndInOrder();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 150));
        assertThat(tried.size()).isEqualTo(150 + 2 * 6);
    }

    @Test
    void subscribeBatch_handlerThrows_sameEventsAreRetried() {
        String stream = newStream(1);
        publishTexts(stream, 0, 50);
        int ofOne = (int) readAll(stream).stream().filter(e -> e.shard() == 0).count();
        List<List<String>> tried = new ArrayList<>();
        Handled handled = new Handled();
        AtomicInteger calls = new AtomicInteger();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withConcurrency(1), page -> {
                    if (page.getFirst().shard() == 0) {
                        tried.add(page.stream().map(StoredEvent::text).toList());
                        if (calls.incrementAndGet() <= 3) {
                            throw new IllegalStateException("on purpose");
                        }
                    }
                    handled.addAll(page);
                })) {
            handled.awaitSize(50).assertOnceAndInOrder();
        }
        assertThat(tried).hasSize(4).containsOnly(tried.getFirst());
        assertThat(tried.getFirst()).hasSize(ofOne);
    }

    private interface Failing {
        void fail() throws Exception;
    }

    /** Failures besides ordinary exceptions that must not stop a member. */
    private enum Failure implements Failing {
        ERROR {
            @Override
            public void fail() {
                throw new AssertionError("on purpose");
            }
        },
        OUT_OF_MEMORY {
            @Override
            public void fail() {
                throw new OutOfMemoryError("on purpose");
            }
        },
        STACK_OVERFLOW {
            @Override
            public void fail() {
                throw new StackOverflowError("on purpose");
            }
        },
        INTERRUPTED_EXCEPTION {
            @Override
            public void fail() throws Exception {
                throw new InterruptedException("on purpose");
            }
        },
        INTERRUPTED_THREAD {
            @Override
            public void fail() {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("on purpose");
            }
        },
        INTERRUPTED_AND_RETURNED {
            @Override
            public void fail() {
                Thread.currentThread().interrupt();
            }
        },
        SNEAKY_CHECKED {
            @Override
            public void fail() throws Exception {
                throw new IOException("on purpose");
            }
        },
    }

    @ParameterizedTest
    @EnumSource
    void subscribe_handlerFailsInAnyWay_memberContinues(Failure failure) {
        String stream = newStream();
        publishTexts(stream, 0, 40);
        AtomicInteger failed = new AtomicInteger();
        Handled handled = new Handled();
        try (Subscription subscription = eventSql.subscribe(consumer(stream, "c"), event -> {
            if (failed.incrementAndGet() <= 5) {
                failure.fail();
            }
            handled.add(event);
        })) {
            handled.awaitSize(40).assertOnceAndInOrder();
            publishTexts(stream, 40, 80);
            handled.awaitSize(80).assertOnceAndInOrder();
            assertThat(subscription.isRunning()).isTrue();
            await().until(() -> committed(stream, "c") == 80);
        }
    }
}
