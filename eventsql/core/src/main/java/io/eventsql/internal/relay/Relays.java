package io.eventsql.internal.relay;

import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The relays of this process: one for each shard's outbox, and one for each database that has only an outbox. Thread-safe. */
public final class Relays {
    private static final Logger LOG = LoggerFactory.getLogger(Relays.class);

    private final Shards shards;
    private final StreamRegistry streams;
    private final Settings settings;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final List<Relay> relays = new ArrayList<>();

    /**
     * @param outboxes databases with an outbox besides the shards
     * @throws ShardIdentityException if one of them belongs to another cluster
     */
    public Relays(
            Shards shards,
            StreamRegistry streams,
            Settings settings,
            SegmentKeeper segments,
            WakeUp wakeUp,
            List<DataSource> outboxes) {
        this.shards = shards;
        this.streams = streams;
        this.settings = settings;
        this.segments = segments;
        this.wakeUp = wakeUp;
        for (Shard shard : shards.all()) {
            add(OutboxDatabase.of(shards, shard));
        }
        for (DataSource dataSource : outboxes) {
            if (shards.of(dataSource).isEmpty()) {
                add(OutboxDatabase.of(
                        shards,
                        shards.tables().outbox(),
                        "outbox" + (relays.size() - shards.size()),
                        new Database(dataSource, settings.networkTimeout())));
            }
        }
    }

    private void add(OutboxDatabase outbox) {
        try {
            outbox.open();
        } catch (SQLException e) {
            LOG.warn(
                    "The database of {} does not answer; it is relayed as soon as it does: {}", outbox, e.getMessage());
        }
        relays.add(relay(outbox));
    }

    private Relay relay(OutboxDatabase outbox) {
        PollSchedule looks = new PollSchedule(System::nanoTime);
        Shard own = outbox.shard();
        Pass pass = new Pass(outbox, new Destinations(shards, streams, own), segments, wakeUp, pageSize());
        Senders senders = new Senders(
                outbox,
                shards.all().stream().filter(shard -> shard != own).toList(),
                shard -> new Sender(outbox, shard, streams, segments, wakeUp, pageSize()),
                ended -> looks.committed());
        RingKeeper ring = new RingKeeper(outbox, () -> senders.wake(outbox.otherShards()));
        return new Relay(
                outbox, settings, new Relay.Parts(pass, senders, ring, new RelayListener(outbox, looks), looks));
    }

    private PageSize pageSize() {
        return new PageSize(settings.outboxPageEvents(), settings.maxBatchBytes());
    }

    /** Begins to relay. */
    public void start() {
        relays.forEach(Relay::start);
    }

    /** A transaction of this process has published on this connection, and may be committed soon. */
    void published(Connection transaction) {
        List<Relay> ofDatabase = ofDatabase(transaction);
        // The same database may have several names.
        (ofDatabase.isEmpty() ? relays : ofDatabase).forEach(Relay::published);
    }

    private List<Relay> ofDatabase(Connection connection) {
        try {
            String url = OutboxDatabase.url(connection);
            return relays.stream().filter(relay -> relay.outbox().hasUrl(url)).toList();
        } catch (SQLException e) {
            LOG.debug("A connection does not say where it leads", e);
            return List.of();
        }
    }

    /** Transactions that published were committed. */
    void committed() {
        List<Relay> expecting =
                relays.stream().filter(Relay::hasPublishedLately).toList();
        (expecting.isEmpty() ? relays : expecting).forEach(Relay::committed);
    }

    /** The databases with an outbox, but for those that are shards, too. */
    List<OutboxDatabase> outboxes() {
        return relays.stream()
                .map(Relay::outbox)
                .filter(outbox -> !outbox.isServedAlready())
                .toList();
    }

    /** Ends what is under way and releases the leases; returns whether that was done in time. What waits is not lost. */
    public boolean close(long deadlineNanos) throws InterruptedException {
        relays.forEach(Relay::stop);
        boolean inTime = true;
        for (Relay relay : relays) {
            inTime &= relay.awaitEnd(deadlineNanos);
        }
        return inTime;
    }
}
