package io.eventsql.fault;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Callers that publish to one stream in every way there is: one event and wait, one event asynchronously, many at once;
 * with keys of their own, without keys, and mixed. Each runs on a thread of its own until {@link #stop}. What becomes of
 * each event goes to a {@link Ledger}.
 */
final class Load {
    private static final int KEYS_OF_A_CALLER = 3;
    private static final int ASYNC_CALLS_MAX = 40;
    private static final int PUBLISH_ALL_EVENTS_MAX = 20;

    private final EventPublisher publisher;
    private final String stream;
    private final Ledger ledger;
    private final List<Thread> callers = new ArrayList<>();
    private final Queue<Throwable> surprises = new ConcurrentLinkedQueue<>();
    private volatile boolean stopped;

    /** How a caller publishes. */
    enum Way {
        SINGLE,
        ASYNC,
        ALL
    }

    Load(EventPublisher publisher, String stream, Ledger ledger) {
        this.publisher = publisher;
        this.stream = stream;
        this.ledger = ledger;
    }

    /**
     * Starts a caller.
     *
     * @param name begins its keys
     * @param pauseMaxMs the longest pause between two calls; 0: none
     */
    void start(Way way, String name, Random random, int pauseMaxMs) {
        Random own = new Random(random.nextLong());
        Thread caller = new Thread(
                () -> {
                    try {
                        switch (way) {
                            case SINGLE -> publishSingle(name, own, pauseMaxMs);
                            case ASYNC -> publishAsync(name, own, pauseMaxMs);
                            case ALL -> publishAll(name, own, pauseMaxMs);
                        }
                    } catch (Throwable e) {
                        surprises.add(e);
                    }
                },
                "caller-" + name);
        callers.add(caller);
        caller.start();
    }

    /** Starts {@code each} callers of each way. */
    void startAll(int each, String name, Random random, int pauseMaxMs) {
        for (int i = 0; i < each; i++) {
            for (Way way : Way.values()) {
                start(way, name + "-" + way.name().toLowerCase(Locale.ROOT) + i + "-", random, pauseMaxMs);
            }
        }
    }

    /** Ends all callers and waits until each was told what became of its calls. */
    void stop() throws InterruptedException {
        stopped = true;
        for (Thread caller : callers) {
            caller.join(TimeUnit.MINUTES.toMillis(2));
            if (caller.isAlive()) {
                AssertionError stuck = new AssertionError(caller.getName() + " was never told the outcome");
                stuck.setStackTrace(caller.getStackTrace());
                throw stuck;
            }
        }
        if (!surprises.isEmpty()) {
            throw new AssertionError("a caller got an unexpected error", surprises.peek());
        }
    }

    private static @Nullable String key(String name, Random random) {
        int key = random.nextInt(KEYS_OF_A_CALLER + 1);
        return key == KEYS_OF_A_CALLER ? null : name + key;
    }

    private void publishSingle(String name, Random random, int pauseMaxMs) throws InterruptedException {
        while (!stopped) {
            Event event = ledger.next(key(name, random));
            try {
                ledger.stored(event, publisher.publish(stream, event));
            } catch (RuntimeException e) {
                ledger.failed(List.of(event), e);
            }
            pause(random, pauseMaxMs);
        }
    }

    private void publishAsync(String name, Random random, int pauseMaxMs) throws InterruptedException {
        Deque<CompletableFuture<?>> open = new ArrayDeque<>();
        while (!stopped) {
            Event event = ledger.next(key(name, random));
            CompletableFuture<EventPosition> future = publisher.publishAsync(stream, event);
            open.add(future.handle((position, failure) -> {
                if (failure == null) {
                    ledger.stored(event, position);
                } else {
                    ledger.failed(List.of(event), unwrap(failure));
                }
                return event;
            }));
            while (open.size() > ASYNC_CALLS_MAX
                    || (!open.isEmpty() && open.peek().isDone())) {
                open.remove().join();
            }
            pause(random, pauseMaxMs);
        }
        open.forEach(CompletableFuture::join);
    }

    private void publishAll(String name, Random random, int pauseMaxMs) throws InterruptedException {
        while (!stopped) {
            boolean keys = random.nextInt(4) > 0;
            boolean oneKey = random.nextBoolean();
            List<Event> events = new ArrayList<>();
            String key = name + random.nextInt(KEYS_OF_A_CALLER);
            for (int i = random.nextInt(PUBLISH_ALL_EVENTS_MAX); i >= 0; i--) {
                events.add(ledger.next(!keys ? null : oneKey ? key : key(name, random)));
            }
            try {
                List<EventPosition> positions = publisher.publishAll(stream, events);
                for (int i = 0; i < positions.size(); i++) {
                    ledger.stored(events.get(i), positions.get(i));
                }
            } catch (RuntimeException e) {
                ledger.failed(events, e);
            }
            pause(random, pauseMaxMs);
        }
    }

    private static Throwable unwrap(Throwable failure) {
        return failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    }

    private static void pause(Random random, int pauseMaxMs) throws InterruptedException {
        if (pauseMaxMs > 0) {
            TimeUnit.MILLISECONDS.sleep(random.nextInt(pauseMaxMs + 1));
        }
    }
}
