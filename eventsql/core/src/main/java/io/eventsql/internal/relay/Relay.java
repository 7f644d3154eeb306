package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.internal.sql.RelayTable.Polled;
import io.eventsql.internal.sql.RelayTable.Tenure;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One process's part in relaying one outbox. One of all processes has the lease: it looks, and moves what it finds. The
 * others look for the lease three times in its duration, and notify the holder of what they publish. Has one thread.
 *
 * <p>The lease only says who should relay. Who may is decided by the relay's row, in every transaction ({@link Pass}).
 */
final class Relay {
    private static final Logger LOG = LoggerFactory.getLogger(Relay.class);
    private static final int LEASE_PARTS = 3;
    private static final Duration NO_DATABASE_PAUSE = Duration.ofSeconds(1);
    private static final long LATELY_NANOS = TimeUnit.MINUTES.toNanos(1);
    private static final long BACKOFF_MIN_MS = 20;
    private static final long BACKOFF_MAX_MS = 1_000;

    private final OutboxDatabase outbox;
    private final Settings settings;
    private final PollSchedule looks;
    private final Pass pass;
    private final Senders senders;
    private final RingKeeper ring;
    private final RelayListener listener;
    private final Thread thread;
    private final UUID self = UUID.randomUUID();
    /** What it holds; {@code null}: somebody else relays. */
    private final AtomicReference<@Nullable Tenure> tenure = new AtomicReference<>();

    private volatile long publishedAtNanos = System.nanoTime() - LATELY_NANOS;
    private int failures;
    /** Whether the last look found events. */
    private boolean foundLast;
    /** Whether events wait, as far as is known. */
    private boolean waiting;

    private long polledAtNanos;

    /** What a relay is made of. */
    record Parts(Pass pass, Senders senders, RingKeeper ring, RelayListener listener, PollSchedule looks) {}

    Relay(OutboxDatabase outbox, Settings settings, Parts parts) {
        this.outbox = outbox;
        this.settings = settings;
        this.looks = parts.looks();
        this.pass = parts.pass();
        this.senders = parts.senders();
        this.ring = parts.ring();
        this.listener = parts.listener();
        this.thread = new Thread(this::run, "eventsql-relay-" + outbox);
        thread.setDaemon(true);
    }

    OutboxDatabase outbox() {
        return outbox;
    }

    void start() {
        thread.start();
    }

    /** See {@link Looks#published()}. */
    void published() {
        publishedAtNanos = System.nanoTime();
        looks.published();
    }

    /** Whether a transaction of this process has published not long ago. */
    boolean hasPublishedLately() {
        return System.nanoTime() - publishedAtNanos < LATELY_NANOS;
    }

    /** See {@link Looks#committed()}. */
    void committed() {
        looks.committed();
    }

    private void run() {
        try {
            while (!looks.isClosed()) {
                boolean hinted = looks.await();
                if (!looks.isClosed()) {
                    lookSafely(hinted);
                }
                if (outbox.isServedAlready()) {
                    return;
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // close() has given up waiting
        } finally {
            end();
        }
    }

    private void lookSafely(boolean hinted) throws InterruptedException {
        try {
            look(hinted);
            failures = 0;
        } catch (SQLException e) {
            failed(e);
        } catch (EventSqlException e) {
            LOG.error("The outbox {} cannot be relayed: {}", outbox, e.getMessage());
            doubt();
            looks.next(NO_DATABASE_PAUSE, NO_DATABASE_PAUSE);
        } catch (RuntimeException | Error e) { // whatever goes wrong, the thread must go on
            LOG.error("Relaying the outbox {} failed, and is tried again", outbox, e);
            doubt();
            looks.next(NO_DATABASE_PAUSE, NO_DATABASE_PAUSE);
        }
    }

    private void failed(SQLException e) {
        if (SqlErrors.state(e).equals(SqlErrors.RELAY_LOST)) {
            lost(tenure.get());
            return;
        }
        if (failures == 0) {
            LOG.warn("The outbox {} is not relayed for the moment: {}", outbox, e.getMessage());
        } else {
            LOG.debug("The outbox {} is still not relayed", outbox, e);
        }
        doubt();
        long backoff = Math.min(BACKOFF_MIN_MS << Math.min(failures++, 10), BACKOFF_MAX_MS);
        Duration pause =
                Duration.ofMillis(backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2 + 1));
        looks.next(pause, pause);
    }

    /** What became of a commit without an answer is not known: taking the lease anew finds what there is to send. */
    private void doubt() {
        senders.setTenure(null);
        tenure.set(null);
    }

    /** One look: for the lease, and if it has it, for events. */
    private void look(boolean hinted) throws SQLException, InterruptedException {
        outbox.open();
        if (!outbox.isReady()) {
            return;
        }
        long begun = System.nanoTime();
        Tenure current = tenure.get();
        if (current == null || !foundLast || begun - polledAtNanos > leaseNanos() / LEASE_PARTS) {
            polledAtNanos = begun;
            current = poll(current, hinted);
            if (current == null) {
                listener.end();
                looks.next(settings.outboxLease().dividedBy(LEASE_PARTS), settings.notifyInterval());
                return;
            }
        } else {
            waiting = true; // it found some a moment ago: it looks by taking
        }
        foundLast = waiting && moveAll(current) > 0;
        long took = System.nanoTime() - begun;
        if (foundLast) {
            looks.found(took);
        } else {
            looks.foundNothing(took, pollInterval());
        }
        ring.keep(current);
    }

    /** Takes, renews or loses the lease, and learns whether events wait. */
    private @Nullable Tenure poll(@Nullable Tenure held, boolean hinted) throws SQLException {
        Polled polled = outbox.database()
                .call(c -> outbox.tables()
                        .relay()
                        .poll(c, self, held == null ? 0 : held.epoch(), leaseSeconds(), hinted && held == null));
        waiting = polled.waiting();
        Long epoch = polled.epoch();
        if (epoch == null) {
            lost(held);
            return null;
        }
        if (held != null && held.epoch() == epoch) {
            return held;
        }
        Tenure taken =
                new Tenure(self, epoch, Math.toIntExact(settings.outboxLease().toMillis()));
        taken(taken);
        return taken;
    }

    /** Each look renews the lease. */
    private Duration pollInterval() {
        Duration renewal = settings.outboxLease().dividedBy(LEASE_PARTS);
        return settings.outboxPollInterval().compareTo(renewal) < 0 ? settings.outboxPollInterval() : renewal;
    }

    private long leaseNanos() {
        return settings.outboxLease().toNanos();
    }

    private double leaseSeconds() {
        return settings.outboxLease().toMillis() / 1_000.0;
    }

    private void taken(Tenure current) throws SQLException {
        LOG.debug("Relaying the outbox {} with epoch {}", outbox, current.epoch());
        tenure.set(current);
        senders.setTenure(current);
        listener.begin();
        ring.moved();
        senders.wake(outbox.database().call(c -> outbox.tables().transfer().shardsWithEvents(c, outbox.otherShards())));
    }

    /** Moves page after page until one is not full; gives the lease's renewal its turn in between. */
    private int moveAll(Tenure current) throws SQLException {
        long end = System.nanoTime() + leaseNanos() / LEASE_PARTS;
        int events = 0;
        Pass.Moved moved;
        do {
            moved = pass.run(current);
            events += moved.events();
            if (moved.events() > 0) {
                ring.moved();
                senders.wake(moved.toShards());
                ring.keep(current);
            }
        } while (moved.full() && !looks.isClosed() && System.nanoTime() - end < 0);
        return events;
    }

    private void lost(@Nullable Tenure former) {
        if (former != null && tenure.compareAndSet(former, null)) {
            LOG.info("The outbox {} is relayed by another process from now on", outbox);
            senders.setTenure(null);
        }
    }

    private void end() {
        senders.close();
        Tenure held = tenure.getAndSet(null);
        try {
            listener.end();
            if (held != null) {
                outbox.database().call(c -> {
                    outbox.tables().relay().release(c, held);
                    return held;
                });
            }
        } catch (SQLException e) {
            LOG.debug("The lease on {} was not released and will expire", outbox, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Says that it is to end; then what is under way ends, and the lease is released. */
    void stop() {
        looks.close();
    }

    /** Waits for its end; returns whether it came in time. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        long left = TimeUnit.NANOSECONDS.toMillis(deadlineNanos - System.nanoTime());
        thread.join(Math.max(left, 1));
        if (thread.isAlive()) {
            thread.interrupt();
            return false;
        }
        return senders.awaitEnd(deadlineNanos);
    }
}
