package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A publisher that goes on: at each tick one event for each partition, of its keys in turn, so that every partition has
 * something to handle at any time. All calls must succeed.
 */
final class SteadyLoad {
    private static final int KEYS_OF_A_PARTITION = 3;
    private static final int CANDIDATES_MAX = 10_000;
    private static final int OPEN_MAX = 2_000;

    private final EventSql eventSql;
    private final String stream;
    private final Ledger ledger = new Ledger();
    private final List<List<String>> keys = new ArrayList<>();
    private final Deque<CompletableFuture<?>> open = new ArrayDeque<>();
    private final Thread thread;
    private volatile boolean stopped;
    private volatile @Nullable Throwable failure;

    /** Publishes a few events to find keys for every partition, then begins. */
    static SteadyLoad start(EventSql eventSql, StreamSpec stream, long tickMs) {
        SteadyLoad load = new SteadyLoad(eventSql, stream, tickMs);
        load.findKeys(stream.partitions());
        load.thread.start();
        return load;
    }

    private SteadyLoad(EventSql eventSql, StreamSpec stream, long tickMs) {
        this.eventSql = eventSql;
        this.stream = stream.name();
        this.thread = new Thread(() -> run(tickMs), "steady-load");
        thread.setDaemon(true);
    }

    private void findKeys(int partitions) {
        for (int i = 0; i < partitions; i++) {
            keys.add(new ArrayList<>());
        }
        int missing = partitions * KEYS_OF_A_PARTITION;
        for (int i = 0; missing > 0 && i < CANDIDATES_MAX; i++) {
            String key = "key" + i;
            Event event = ledger.next(key);
            EventPosition position = eventSql.publisher().publish(stream, event);
            ledger.stored(event, position);
            List<String> ofPartition = keys.get(position.partition());
            if (ofPartition.size() < KEYS_OF_A_PARTITION) {
                ofPartition.add(key);
                missing--;
            }
        }
        assertThat(missing).isZero();
    }

    private void run(long tickMs) {
        try {
            for (int tick = 0; !stopped; tick++) {
                for (List<String> ofPartition : keys) {
                    publish(ofPartition.get(tick % KEYS_OF_A_PARTITION));
                }
                while (open.size() > OPEN_MAX || (!open.isEmpty() && open.peek().isDone())) {
                    open.remove().join();
                }
                TimeUnit.MILLISECONDS.sleep(tickMs);
            }
            open.forEach(CompletableFuture::join);
        } catch (Throwable e) {
            failure = e;
        }
    }

    private void publish(String key) {
        Event event = ledger.next(key);
        open.add(eventSql.publisher()
                .publishAsync(stream, event)
                .thenAccept(position -> ledger.stored(event, position)));
    }

    long published() {
        return ledger.storedCount();
    }

    /** Ends it once every call is acknowledged. */
    Ledger stop() throws InterruptedException {
        stopped = true;
        thread.join();
        Throwable e = failure;
        if (e != null) {
            throw new AssertionError("a call failed", e);
        }
        return ledger;
    }
}
