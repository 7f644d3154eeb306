package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives a member's pages to its handler: one page of a partition at a time, in order, at most {@link
 * ConsumerSpec#concurrency()} partitions at once, on virtual threads.
 */
final class Dispatcher {
    private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);

    private final Attempts attempts;
    private final Failures failures;
    private final Redrive redrive;
    private final boolean batches;
    private final int keyConcurrency;
    private final Semaphore places;
    private final ExecutorService virtualThreads;

    Dispatcher(ConsumerSpec spec, HandlerCall call, Failures failures) {
        this.failures = failures;
        this.attempts = new Attempts(spec, call, failures);
        this.redrive = new Redrive(attempts, failures);
        this.batches = call.takesBatches();
        this.keyConcurrency = spec.keyConcurrency();
        this.places = new Semaphore(spec.concurrency(), true);
        this.virtualThreads = Executors.newThreadPerTaskExecutor(Thread.ofVirtual()
                .name("eventsql-" + spec.stream() + "-" + spec.name() + "-", 0)
                .factory());
    }

    /** Starts the handler on a partition for which there is work. */
    void start(ShardMember member, OwnedPartition partition) {
        try {
            virtualThreads.execute(() -> handleAll(member, partition));
        } catch (RejectedExecutionException e) { // closed meanwhile
            LOG.debug("no longer handling {}", member.name(partition), e);
            partition.giveUp();
            partition.endHandling();
        }
    }

    /** Handles pages until there is none, or the partition ends; then whoever waits for that is told. */
    private void handleAll(ShardMember member, OwnedPartition partition) {
        HandlerClock clock = partition.newClock();
        do {
            partition.awaitsTurn();
            places.acquireUninterruptibly(); // for each page anew: with few places partitions take turns
            partition.hasTurn();
            try {
                handleNext(member, partition, clock);
            } catch (RuntimeException | Error e) { // a fault of ours, not of the handler
                LOG.error("Handling {} failed", member.name(partition), e);
                failures.stop(member, partition, "internal error: " + e);
            } finally {
                places.release();
            }
        } while (!partition.endHandling());
        partition.endClock(clock);
        if (partition.isEnding()) {
            member.threads().keeper().drained();
        }
    }

    private void handleNext(ShardMember member, OwnedPartition partition, HandlerClock clock) {
        if (partition.takeRedriveWanted()) {
            if (keyConcurrency > 1) {
                lanes(member, partition).awaitEmpty();
            }
            redrive.run(member, partition, clock);
        }
        @Nullable List<StoredEvent> page = partition.nextPage();
        if (page == null) {
            return;
        }
        member.threads().fetcher().signal(); // there is room for another page
        if (keyConcurrency > 1) {
            lanes(member, partition).handle(page);
        } else {
            handleInOrder(member, partition, page, clock);
        }
    }

    private KeyLanes lanes(ShardMember member, OwnedPartition partition) {
        return partition.lanes(
                () -> new KeyLanes(member, partition, attempts, failures, keyConcurrency, virtualThreads));
    }

    /** A run of events is handled in one call; events of parked keys are set aside, in their turn. */
    private void handleInOrder(
            ShardMember member, OwnedPartition partition, List<StoredEvent> page, HandlerClock clock) {
        boolean goesOn = true;
        for (int next = 0; next < page.size() && goesOn; ) {
            boolean parked = partition.isParked(page.get(next).key());
            int end = endOfRun(partition, page, next, parked);
            List<StoredEvent> run = page.subList(next, end);
            goesOn = parked
                    ? failures.parkBehind(member, partition, run)
                    : attempts.handle(member, partition, run, clock);
            next = end;
        }
    }

    private int endOfRun(OwnedPartition partition, List<StoredEvent> page, int first, boolean parked) {
        int end = first + 1;
        while ((batches || parked)
                && end < page.size()
                && partition.isParked(page.get(end).key()) == parked) {
            end++;
        }
        return end;
    }

    /** Handlers at work end after their current event; no page is begun. */
    void stop() {
        attempts.stop();
    }

    void shutdown() {
        virtualThreads.shutdown();
    }
}
