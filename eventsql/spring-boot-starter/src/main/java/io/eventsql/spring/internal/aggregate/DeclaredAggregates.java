package io.eventsql.spring.internal.aggregate;

import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.spring.EventSqlContinuousAggregates;
import io.eventsql.spring.internal.KeepAlive;
import io.eventsql.spring.internal.ShutdownBudget;
import io.eventsql.spring.internal.StreamCreator;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.SmartLifecycle;

/** Starts and stops the declared aggregates with the application. Thread-safe. */
public final class DeclaredAggregates implements EventSqlContinuousAggregates, SmartLifecycle {
    private static final Logger LOG = LoggerFactory.getLogger(DeclaredAggregates.class);

    private final EventSql eventSql;
    private final StreamCreator streams;
    private final ShutdownBudget shutdown;
    private final Map<String, ContinuousAggregateSpec> declared = new LinkedHashMap<>();
    private final Map<String, ContinuousAggregate> members = new ConcurrentHashMap<>();
    private @Nullable CountDownLatch running;

    /**
     * @param shutdown limits how long stopping takes
     * @throws InvalidInputException if a name is declared twice
     */
    public DeclaredAggregates(
            EventSql eventSql,
            StreamCreator streams,
            ShutdownBudget shutdown,
            Collection<ContinuousAggregateSpec> declared) {
        this.eventSql = eventSql;
        this.streams = streams;
        this.shutdown = shutdown;
        for (ContinuousAggregateSpec spec : declared) {
            if (this.declared.putIfAbsent(spec.name(), spec) != null) {
                throw new InvalidInputException("aggregate.name", "'" + spec.name() + "' is declared by two beans");
            }
        }
    }

    @Override
    public ContinuousAggregate aggregate(String name) {
        ContinuousAggregate member = members.get(name);
        if (member == null) {
            throw new NoSuchElementException(
                    "No continuous aggregate " + name + " is running; declared: " + declared.keySet());
        }
        return member;
    }

    /** Starts all aggregates, or none. */
    @Override
    public synchronized void start() {
        if (running != null) {
            return;
        }
        try {
            declared.forEach((name, spec) -> {
                streams.createIfMissing(spec.stream());
                members.put(name, eventSql.startContinuousAggregate(spec));
            });
        } catch (RuntimeException e) {
            closeMembers();
            throw e;
        }
        running = new CountDownLatch(1);
        KeepAlive.until(running, "eventsql-aggregates");
    }

    @Override
    public synchronized void stop() {
        closeMembers();
        if (running != null) {
            running.countDown();
            running = null;
        }
    }

    /** Closes all members at the same time. */
    private void closeMembers() {
        Duration timeout = shutdown.beginStop();
        try (ExecutorService each = Executors.newThreadPerTaskExecutor(
                Thread.ofPlatform().name("eventsql-stop-", 0).factory())) {
            members.forEach((name, member) -> each.execute(() -> {
                if (!member.close(timeout)) {
                    LOG.warn(
                            "Continuous aggregate {} did not stop within {} ms; nothing is counted twice",
                            name,
                            timeout.toMillis());
                }
            }));
        }
        members.clear();
        shutdown.endStop();
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
