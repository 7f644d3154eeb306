package io.eventsql.spring.listener;

import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.SmartLifecycle;

/**
 * The application's listeners. They start when all beans are there and stop before any is destroyed; while one runs, the
 * process lives on, though it may serve nothing else. Thread-safe.
 */
public final class EventSqlListenerRegistry implements SmartLifecycle {
    /** After everything an event may need, a web server included; stopped before it. */
    public static final int PHASE = Integer.MAX_VALUE - 100;

    private static final Logger LOG = LoggerFactory.getLogger(EventSqlListenerRegistry.class);

    private final Map<String, EventSqlListenerContainer> containers = new ConcurrentSkipListMap<>();
    private @Nullable CountDownLatch running;

    /** All listeners, by id. */
    public List<EventSqlListenerContainer> containers() {
        return List.copyOf(containers.values());
    }

    /**
     * A listener, to stop or start it.
     *
     * @throws NoSuchElementException if there is none with this id
     */
    public EventSqlListenerContainer container(String id) {
        EventSqlListenerContainer container = containers.get(id);
        if (container == null) {
            throw new NoSuchElementException("There is no listener " + id + ", only " + containers.keySet());
        }
        return container;
    }

    /** Adds a listener; starts it if the others have started. */
    synchronized void add(EventSqlListenerContainer container) {
        containers.put(container.id(), container);
        if (running != null && container.isAutoStartup()) {
            container.start();
        }
    }

    /** Starts all listeners that start with the application, or none. */
    @Override
    public synchronized void start() {
        if (running != null) {
            return;
        }
        try {
            containers.values().stream()
                    .filter(EventSqlListenerContainer::isAutoStartup)
                    .forEach(EventSqlListenerContainer::start);
        } catch (RuntimeException e) {
            stopAll();
            throw e;
        }
        running = new CountDownLatch(1);
        if (!containers.isEmpty()) {
            keepAlive(running);
        }
    }

    /** All threads of the library are daemons: an application that only listens would end at once. */
    private static void keepAlive(CountDownLatch running) {
        Thread thread = new Thread(
                () -> {
                    try {
                        running.await();
                    } catch (InterruptedException e) {
                        LOG.debug("no longer keeps the process alive", e);
                    }
                },
                "eventsql-listeners");
        thread.setDaemon(false);
        thread.start();
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
        try (ExecutorService each = Executors.newThreadPerTaskExecutor(
                Thread.ofPlatform().name("eventsql-stop-", 0).factory())) {
            containers.values().forEach(container -> each.execute(container::stop));
        }
    }

    /** Beside others of this phase. */
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
