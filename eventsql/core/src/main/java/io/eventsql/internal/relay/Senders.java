package io.eventsql.internal.relay;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The senders of one outbox, one for each shard; that of its own shard has events only after keys have moved, or while it cannot get
 * their stream. An unavailable shard delays only its own events. Thread-safe.
 */
final class Senders {
    private final Map<Integer, SenderThread> threads = new HashMap<>();
    private volatile @Nullable RelayLease lease;

    /** @param lost called when a lease has ended */
    Senders(OutboxDatabase outbox, List<Shard> shards, Function<Shard, Sender> sender, Runnable lost) {
        SenderThread.Tenure tenure = new SenderThread.Tenure() {
            @Override
            public @Nullable RelayLease current() {
                return lease;
            }

            @Override
            public void ended() {
                lost.run();
            }
        };
        for (Shard shard : shards) {
            threads.put(shard.number(), new SenderThread(outbox, shard, sender.apply(shard), tenure));
        }
    }

    /** Sets the lease of further transactions; {@code null}: nothing is sent. */
    void setTenure(@Nullable RelayLease current) {
        lease = current;
    }

    /** Signals that there may be events for these shards. */
    void wake(Collection<Integer> shards) {
        for (Integer shard : shards) {
            SenderThread thread = threads.get(shard);
            if (thread != null) {
                thread.wake();
            }
        }
    }

    /** Stops each sender after its current page. */
    void close() {
        lease = null;
        threads.values().forEach(SenderThread::close);
    }

    /** Waits until all senders have stopped; returns {@code false} if the deadline has passed. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        boolean inTime = true;
        for (SenderThread thread : threads.values()) {
            inTime &= thread.awaitEnd(deadlineNanos);
        }
        return inTime;
    }
}
