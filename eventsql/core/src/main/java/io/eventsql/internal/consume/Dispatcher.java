package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.StoredEvent;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives a member's pages to its handler: one page of a partition at a time, in order, at most {@link
 * ConsumerSpec#concurrency()} partitions at once, on virtual threads. A handler that fails gets the same events again
 * after a growing delay; nothing it throws ends the member.
 */
final class Dispatcher {
    private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);

    private final ConsumerSpec spec;
    private final PageHandler handler;
    private final Semaphore places;
    private final ExecutorService virtualThreads;
    private final CountDownLatch closing = new CountDownLatch(1);

    Dispatcher(ConsumerSpec spec, PageHandler handler) {
        this.spec = spec;
        this.handler = handler;
        this.places = new Semaphore(spec.concurrency(), true);
        this.virtualThreads = Executors.newThreadPerTaskExecutor(Thread.ofVirtual()
                .name("eventsql-" + spec.stream() + "-" + spec.name() + "-", 0)
                .factory());
    }

    /** A handler of either kind. */
    interface PageHandler {
        /**
         * Handles a page.
         *
         * @param progress told after each step the offset behind what is handled
         * @param stop says between two events whether to stop
         */
        void handle(List<StoredEvent> page, LongConsumer progress, CountDownLatch stop) throws Exception;

        static PageHandler ofSingle(EventHandler handler) {
            return (page, progress, stop) -> {
                for (StoredEvent event : page) {
                    if (stop.getCount() == 0) {
                        return;
                    }
                    handler.handle(event);
                    progress.accept(event.offset() + 1);
                }
            };
        }

        static PageHandler ofBatch(EventBatchHandler handler) {
            return (page, progress, stop) -> {
                handler.handle(page);
                progress.accept(page.getLast().offset() + 1);
            };
        }
    }

    /** What the dispatcher tells while it works on a partition. */
    interface Work {
        /** The partition has room for another page. */
        void pageTaken();

        /** Everything of the partition below the offset is handled. */
        void handled(long nextOffset);
    }

    /** Starts the handler on a partition whose page waits. */
    void start(OwnedPartition partition, Work work) {
        try {
            virtualThreads.execute(() -> handlePages(partition, work));
        } catch (RejectedExecutionException e) { // closed meanwhile
            LOG.debug("no longer handling partition {}", partition.partition(), e);
            partition.giveUp();
            partition.nextPage();
        }
    }

    private void handlePages(OwnedPartition partition, Work work) {
        boolean more = true;
        while (more) {
            places.acquireUninterruptibly(); // for each page anew: with fewer places than partitions these take turns
            try {
                List<StoredEvent> page = partition.nextPage();
                more = page != null;
                if (page != null) {
                    work.pageTaken();
                    handlePage(partition, page, work);
                }
            } finally {
                places.release();
            }
        }
    }

    private void handlePage(OwnedPartition partition, List<StoredEvent> page, Work work) {
        long first = page.getFirst().offset();
        long[] next = {first};
        LongConsumer progress = offset -> {
            next[0] = offset;
            work.handled(offset);
        };
        for (int failures = 0; closing.getCount() > 0 && !partition.isGivenUp(); failures++) {
            long before = next[0];
            try {
                handler.handle(page.subList((int) (before - first), page.size()), progress, closing);
                return;
            } catch (Throwable e) { // whatever a handler throws, even an Error, must not end the member
                failures = next[0] > before ? 0 : failures;
                long delayMs = delayMs(failures);
                LOG.warn(
                        "Handler of consumer {} failed at {} offset {}, handled again in {} ms",
                        spec.name(),
                        page.getFirst().position(),
                        next[0],
                        delayMs,
                        e);
                if (isClosingAfter(delayMs)) {
                    return;
                }
            }
        }
    }

    /** Waits before the next attempt. Only handlers interrupt these threads, and they must not end the member by it. */
    private boolean isClosingAfter(long delayMs) {
        Thread.interrupted();
        try {
            return closing.await(delayMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            LOG.debug("interrupted by a handler", e);
            return closing.getCount() == 0;
        }
    }

    private long delayMs(int failures) {
        long longest = spec.retryDelayMax().toMillis();
        long delay = Math.min(longest, spec.retryDelayMin().toMillis() << Math.min(failures, 20));
        return delay / 2 + ThreadLocalRandom.current().nextLong(delay / 2 + 1);
    }

    /** Handlers at work end after their current event; no page is begun. */
    void stop() {
        closing.countDown();
    }

    void shutdown() {
        virtualThreads.shutdown();
    }
}
