package io.eventsql.internal.relay;

import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.internal.append.AcknowledgedBatches;
import io.eventsql.internal.append.PublishListeners;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The relays of this process: one for each shard's outbox and one for each standalone outbox. Thread-safe. */
public final class Relays {
    private static final Logger LOG = LoggerFactory.getLogger(Relays.class);

    private final Shards shards;
    private final StreamRegistry streams;
    private final Settings settings;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final PublishListeners listeners;
    private final List<Relay> relays = new ArrayList<>();

    /**
     * @param outboxes the data sources of the standalone outboxes, each once
     * @throws ShardIdentityException if one of them belongs to another cluster
     */
    public Relays(
            Shards shards,
            StreamRegistry streams,
            Settings settings,
            SegmentKeeper segments,
            WakeUp wakeUp,
            PublishListeners listeners,
            Collection<DataSource> outboxes) {
        this.shards = shards;
        this.streams = streams;
        this.settings = settings;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.listeners = listeners;
        for (Shard shard : shards.all()) {
            add(OutboxDatabase.of(shards, shard));
        }
        for (DataSource dataSource : outboxes) {
            if (shards.of(dataSource).isEmpty()) {
                add(OutboxDatabase.of(
                        shards,
                        shards.tables().outbox(),
                        "outbox" + (relays.size() - shards.all().size()),
                        new Database(dataSource, settings.networkTimeout())));
            }
        }
    }

    private void add(OutboxDatabase outbox) {
        try {
            outbox.open();
        } catch (SQLException e) {
            LOG.warn("Opening outbox {} failed; the relay retries until it succeeds: {}", outbox, SqlErrors.message(e));
        }
        relays.add(createRelay(outbox));
    }

    private Relay createRelay(OutboxDatabase outbox) {
        PollSchedule schedule = new PollSchedule(System::nanoTime);
        DueEvents due = new DueEvents(outbox, settings.outboxPollInterval());
        AtomicReference<@Nullable Senders> started = new AtomicReference<>();
        Senders senders = new Senders(
                outbox,
                shards.all(),
                shard -> newSender(outbox, shard, numbers -> {
                    Senders all = started.get();
                    if (all != null) {
                        all.wake(numbers);
                    }
                }),
                schedule::committed);
        started.set(senders);
        RingKeeper ring = new RingKeeper(outbox, () -> senders.wake(outbox.otherShards()));
        return new Relay(
                outbox,
                settings,
                new Relay.Context(
                        newMover(outbox, outbox.tables().relay()::take),
                        due,
                        newMover(outbox, due),
                        senders,
                        ring,
                        new RelayListener(outbox, schedule, due),
                        schedule));
    }

    private PageMover newMover(OutboxDatabase outbox, EventSource source) {
        Destinations destinations = new Destinations(shards, streams, outbox.shard());
        return new PageMover(outbox, source, destinations, segments, wakeUp, newPageSize());
    }

    private Sender newSender(OutboxDatabase outbox, Shard shard, Consumer<Collection<Integer>> readdressed) {
        AcknowledgedBatches acknowledged = new AcknowledgedBatches(shard, listeners);
        shard.addAnchors(acknowledged);
        return new Sender(outbox, shard, shards, streams, segments, wakeUp, newPageSize(), acknowledged, readdressed);
    }

    private PageSize newPageSize() {
        return new PageSize(settings.outboxPageEvents(), settings.maxBatchBytes());
    }

    /** Starts all relays. */
    public void start() {
        relays.forEach(Relay::start);
    }

    /** Signals that a transaction of this process has published on this connection. */
    void published(Connection transaction) {
        List<Relay> ofDatabase = findByUrl(transaction);
        // A database may be reached by several URLs: then all relays are notified.
        (ofDatabase.isEmpty() ? relays : ofDatabase).forEach(Relay::published);
    }

    private List<Relay> findByUrl(Connection connection) {
        try {
            String url = OutboxDatabase.url(connection);
            return relays.stream().filter(relay -> relay.outbox().hasUrl(url)).toList();
        } catch (SQLException e) {
            LOG.debug("Could not determine the URL of a connection", e);
            return List.of();
        }
    }

    /** Signals that this process has scheduled an event on a shard that is due in this time, or for it if negative. */
    public void scheduled(Shard shard, long nanos) {
        relays.stream().filter(relay -> relay.outbox().shard() == shard).forEach(relay -> relay.scheduled(nanos));
    }

    /** Signals that a transaction of this process has scheduled an event that is due in this time. */
    void scheduled(Connection transaction, long nanos) {
        List<Relay> ofDatabase = findByUrl(transaction);
        (ofDatabase.isEmpty() ? relays : ofDatabase).forEach(relay -> relay.scheduled(nanos));
    }

    /** Signals that transactions that published were committed. */
    void committed() {
        List<Relay> publishing =
                relays.stream().filter(Relay::hasPublishedRecently).toList();
        (publishing.isEmpty() ? relays : publishing).forEach(Relay::committed);
    }

    /** Returns all outboxes, without duplicates. */
    List<OutboxDatabase> outboxes() {
        return relays.stream()
                .map(Relay::outbox)
                .filter(outbox -> !outbox.isDuplicate())
                .toList();
    }

    /**
     * Returns the databases of all outboxes by name.
     *
     * @throws SQLException if one of them is not available
     */
    public Map<String, Database> databases() throws SQLException {
        Map<String, Database> databases = new LinkedHashMap<>();
        for (OutboxDatabase outbox : outboxes()) {
            if (!outbox.isReady()) {
                throw new SQLTransientConnectionException("the outbox " + outbox + " is not available", "08001");
            }
            databases.put(outbox.toString(), outbox.database());
        }
        return databases;
    }

    /** Returns the data sources of the standalone outboxes by name. */
    public Map<String, DataSource> standaloneOutboxes() {
        Map<String, DataSource> standalone = new LinkedHashMap<>();
        for (OutboxDatabase outbox : outboxes()) {
            outbox.standaloneDataSource().ifPresent(dataSource -> standalone.put(outbox.toString(), dataSource));
        }
        return standalone;
    }

    /** Stops all relays and releases their leases; returns {@code false} if the deadline has passed. Keeps waiting events. */
    public boolean close(long deadlineNanos) throws InterruptedException {
        relays.forEach(Relay::stop);
        boolean inTime = true;
        for (Relay relay : relays) {
            inTime &= relay.awaitEnd(deadlineNanos);
        }
        return inTime;
    }
}
