package io.eventsql.spring.internal.listener;

import io.eventsql.spring.EventSqlListenerContainer;
import io.eventsql.spring.EventSqlListenerRegistry;
import io.eventsql.spring.internal.KeepAlive;
import io.eventsql.spring.internal.ShutdownBudget;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.springframework.context.SmartLifecycle;

/** Starts and stops the application's listeners. Thread-safe. */
public final class ListenerRegistry implements EventSqlListenerRegistry, SmartLifecycle {
    private final Map<String, ListenerContainer> containers = new ConcurrentSkipListMap<>();
    private final ShutdownBudget shutdown;
    private @Nullable CountDownLatch running;
    private boolean keepsAlive;

    /** @param shutdown limits how long stopping all listeners takes */
    public ListenerRegistry(ShutdownBudget shutdown) {
        this.shutdown = shutdown;
    }

    @Override
    public List<EventSqlListenerContainer> containers() {
        return List.copyOf(containers.values());
    }

    @Override
    public EventSqlListenerContainer container(String id) {
        EventSqlListenerContainer container = containers.get(id);
        if (container == null) {
            throw new NoSuchElementException("There is no listener " + id + ", only " + containers.keySet());
        }
        return container;
    }

    /** Adds a listener; starts it if the others have started. One that cannot be started is not added. */
    synchronized void add(ListenerContainer container) {
        containers.put(container.id(), container);
        CountDownLatch started = running;
        if (started == null) {
            return;
        }
        if (container.isAutoStartup()) {
            try {
                container.start();
            } catch (RuntimeException | Error e) { // its bean, which is created late, may be requested again
                containers.remove(container.id());
                throw e;
            }
        }
        keepAlive(started);
    }

    /** Has one thread keep the process alive from the first listener on. */
    private void keepAlive(CountDownLatch until) {
        if (!keepsAlive) {
            KeepAlive.until(until, "eventsql-listeners");
            keepsAlive = true;
        }
    }

    /** Removes a listener, which it stops. */
    void remove(ListenerContainer container) {
        containers.remove(container.id(), container);
        container.stop();
    }

    /** Starts all listeners that start with the application, or none. */
    @Override
    public synchronized void start() {
        if (running != null) {
            return;
        }
        shutdown.reset();
        try {
            containers.values().stream()
                    .filter(ListenerContainer::isAutoStartup)
                    .forEach(ListenerContainer::start);
        } catch (RuntimeException e) {
            stopAll();
            throw e;
        }
        CountDownLatch started = new CountDownLatch(1);
        running = started;
        keepsAlive = false;
        if (!containers.isEmpty()) {
            keepAlive(started);
        }
    }

    /** Stops all listeners at the same time. */
    @Override
    public void stop() {
        CountDownLatch wasRunning;
        synchronized (this) {
            wasRunning = running;
            running = null;
        }
        stopAll();
        if (wasRunning != null) {
            wasRunning.countDown();
        }
    }

    private void stopAll() {
        Duration timeout = shutdown.beginStop();
        try (ExecutorService each = Executors.newThreadPerTaskExecutor(
                Thread.ofPlatform().name("eventsql-stop-", 0).factory())) {
            containers.values().forEach(container -> each.execute(() -> container.stop(timeout)));
        }
        shutdown.endStop();
    }

    /** Stops while other beans of this phase stop, too. */
    @Override
    public void stop(Runnable callback) {
        Thread.ofPlatform().name("eventsql-stop").start(() -> {
            try {
                stop();
            } finally {
                callback.run();
            }
        });
    }

    @Override
    public synchronized boolean isRunning() {
        return running != null;
    }

    @Override
    public int getPhase() {
        return PHASE;
    }
}
