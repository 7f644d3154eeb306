package io.eventsql;

import io.eventsql.internal.append.PublishListeners;
import io.eventsql.internal.append.Publisher;
import io.eventsql.internal.consume.Consumers;
import io.eventsql.internal.consume.Listeners;
import io.eventsql.internal.consume.RangeReader;
import io.eventsql.internal.relay.OutboxPublisher;
import io.eventsql.internal.relay.Relays;
import io.eventsql.internal.retain.DeadProducers;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.retain.StreamCleaner;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.wake.WakeUp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The library's entrance: streams of events over one or several PostgreSQL databases (shards). Thread-safe; a process
 * needs one instance for each cluster, made at its start and closed at its end.
 *
 * <p>Connections it takes from each data source's pool at the same time, at most: {@link Settings#appendConnections()}
 * to append, 1 to signal, 1 in the background, 1 to relay the outbox and, where this process does that, 1 to listen for it
 * (kept) and 1 for each other shard that events go to; 1 for the outbox of each other database that has events for this
 * one; where this process consumes, also 1 to listen (kept), 1 to fetch, 1 to commit offsets, 1 to keep leases; and 1 for
 * each thread of yours inside a method of this class.
 */
public final class EventSql implements AutoCloseable {
    private static final long OPEN_MISSING_EVERY_MS = 1_000;

    private final Settings settings;
    private final Shards shards;
    private final StreamRegistry streams;
    private final WakeUp wakeUp;
    private final Publisher publisher;
    private final Relays relays;
    private final OutboxPublisher outbox;
    private final Consumers consumers;
    private final RangeReader reader;
    private final StreamCleaner cleaner;
    private final ScheduledExecutorService timer;
    private final AtomicBoolean closed = new AtomicBoolean();

    private EventSql(Builder builder) {
        settings = builder.settings;
        shards = Shards.open(builder.dataSources, settings);
        streams = new StreamRegistry(shards);
        wakeUp = new WakeUp(shards, settings);
        SegmentKeeper segments = new SegmentKeeper(settings.maxBatchEvents());
        relays = new Relays(shards, streams, settings, segments, wakeUp, builder.outboxes);
        outbox = new OutboxPublisher(streams, shards.tables().outbox(), settings, relays, builder.withOutbox());
        timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "eventsql-timer");
            thread.setDaemon(true);
            return thread;
        });
        UUID producer = UUID.randomUUID();
        publisher = new Publisher(
                producer,
                shards,
                streams,
                builder.preferredShard,
                settings,
                segments,
                wakeUp,
                timer,
                new PublishListeners(builder.publishListeners));
        consumers = new Consumers(shards, streams, settings, segments, wakeUp, new Listeners(builder.listeners));
        reader = new RangeReader(shards, streams);
        cleaner = new StreamCleaner(shards, streams);
        shards.openMissingInBackground(OPEN_MISSING_EVERY_MS);
        new DeadProducers(producer).removeInBackground(shards);
        relays.start();
    }

    /** A builder for an instance over one database. */
    public static Builder builder(DataSource dataSource) {
        return builder(List.of(dataSource));
    }

    /**
     * A builder for an instance over the databases of a cluster, in any order: each knows which shard it is. When all
     * are new, they become a cluster.
     *
     * @param dataSources one for each shard, preferably pools; none twice
     */
    public static Builder builder(List<? extends DataSource> dataSources) {
        return new Builder(dataSources);
    }

    /**
     * Creates the stream on every shard; does nothing if it exists with the same values.
     *
     * @throws InvalidInputException if it exists with other values; names the field
     * @throws EventSqlException if it is new and a shard does not answer: repeat the call then
     */
    public void createStream(StreamSpec spec) {
        streams.create(spec);
    }

    /** All streams, by name. */
    public List<StreamSpec> streams() {
        return streams.all();
    }

    /** The shards that have answered since this instance was made, by number. */
    public List<ShardInfo> shards() {
        return shards.infos();
    }

    /**
     * Tells what {@link #clear} would delete; changes nothing.
     *
     * @throws UnknownStreamException if there is no such stream
     * @throws EventSqlException if a shard does not answer
     */
    public ClearPreview previewClear(String stream) {
        return cleaner.preview(stream);
    }

    /**
     * Deletes all events of a stream on every shard, for good, and gives their space back. The stream stays, and offsets
     * go on: publishers need not stop, a consumer that had handled everything goes on with the next event, for one that
     * had not its {@link OutOfRangePolicy} decides. What consumers have set aside and what waits in outboxes stays.
     *
     * <p>An append waits for a moment, its partition's turn. Where somebody reads a segment for seconds, clearing it is
     * tried again. Broken off at any place, also by the end of the process, the log is whole: ask {@link #previewClear}
     * again, and repeat it.
     *
     * @param confirmation {@link ClearPreview#confirmation()}
     * @return the events that were there
     * @throws InvalidInputException if the confirmation is of another stream, or the stream has been cleared since;
     *     nothing was deleted
     * @throws UnknownStreamException if there is no such stream
     * @throws EventSqlException a member of a consumer holds a partition of it, then nothing was deleted; or a shard does
     *     not answer, or a reader stands in the way, then a part may be
     */
    public long clear(String stream, String confirmation) {
        return cleaner.clear(stream, confirmation);
    }

    /** Publishes events; always the same instance. */
    public EventPublisher publisher() {
        return publisher;
    }

    /** What waits in this process to be appended, by shard; of shards that have not answered yet, too. */
    public List<BufferState> buffers() {
        return publisher.buffers();
    }

    /** Publishes events inside a transaction of yours; always the same instance. */
    public Outbox outbox() {
        return outbox;
    }

    /**
     * Starts a consumer of this process: from now on its handler gets the stream's events one by one, beginning where
     * the consumer's committed offsets are. Any number of members of a consumer may run, in this and other processes:
     * they share its partitions.
     *
     * @throws UnknownStreamException if there is no such stream
     */
    public Subscription subscribe(ConsumerSpec spec, EventHandler handler) {
        return consumers.subscribe(spec, handler);
    }

    /** As {@link #subscribe}, with a handler that gets many events at a time. */
    public Subscription subscribeBatch(ConsumerSpec spec, EventBatchHandler handler) {
        return consumers.subscribeBatch(spec, handler);
    }

    /**
     * As {@link #subscribe}, with a handler whose writes to the event's shard are committed together with the consumer's
     * offset: exactly once. Such handlers take up to {@link ConsumerSpec#concurrency()} connections of each pool.
     *
     * @throws InvalidInputException if {@link ConsumerSpec#keyConcurrency()} is not 1
     */
    public Subscription subscribeTransactional(ConsumerSpec spec, TransactionalEventHandler handler) {
        return consumers.subscribeTransactional(spec, null, handler);
    }

    /**
     * The same in transactions that somebody else begins and ends, such as a framework's transaction manager.
     *
     * @param boundary begins and ends them, in the event's shard
     */
    public Subscription subscribeTransactional(
            ConsumerSpec spec, TransactionBoundary boundary, TransactionalEventHandler handler) {
        return consumers.subscribeTransactional(spec, Objects.requireNonNull(boundary, "boundary"), handler);
    }

    /**
     * As {@link #subscribeTransactional(ConsumerSpec, TransactionalEventHandler)}, with a handler that gets many events
     * in one transaction.
     */
    public Subscription subscribeTransactionalBatch(ConsumerSpec spec, TransactionalEventBatchHandler handler) {
        return consumers.subscribeTransactionalBatch(spec, null, handler);
    }

    /** The same in transactions that somebody else begins and ends. */
    public Subscription subscribeTransactionalBatch(
            ConsumerSpec spec, TransactionBoundary boundary, TransactionalEventBatchHandler handler) {
        return consumers.subscribeTransactionalBatch(spec, Objects.requireNonNull(boundary, "boundary"), handler);
    }

    /** The members that this instance has started and that were not closed since, in no order. */
    public List<Subscription> subscriptions() {
        return consumers.subscriptions();
    }

    /**
     * Shows and changes a consumer, wherever it runs.
     *
     * @throws UnknownStreamException if there is no such stream
     */
    public ConsumerControl consumer(String stream, String name) {
        Names.requireName("consumer.name", name, ConsumerSpec.NAME_LENGTH_MAX);
        return consumers.control(stream, name);
    }

    /**
     * Reads events of one partition without any consumer, in order.
     *
     * @param from the first event; at the partition's head the result is empty
     * @param maxEvents 1 to {@value ConsumerSpec#PAGE_EVENTS_MAX}; fewer are returned at the log's end, or once they
     *     have {@link ConsumerSpec#DEFAULT_PAGE_BYTES} bytes
     * @throws OffsetOutOfRangeException if the offset is below the log's start or beyond its head
     */
    public List<StoredEvent> read(EventPosition from, int maxEvents) {
        InvalidInputException.requireRange("maxEvents", maxEvents, 1, ConsumerSpec.PAGE_EVENTS_MAX);
        InvalidInputException.requireRange("position.offset", from.offset(), 0, Long.MAX_VALUE);
        return reader.read(from, maxEvents, ConsumerSpec.DEFAULT_PAGE_BYTES);
    }

    /**
     * How far a consumer is, by shard and partition; empty if it was never started. {@link ConsumerControl#state} says
     * more.
     *
     * @throws EventSqlException if a shard does not answer
     */
    public List<ConsumerPosition> positions(String stream, String consumer) {
        return consumers.positions(stream, consumer);
    }

    /** Closes with {@link Settings#closeTimeout()}. */
    @Override
    public void close() {
        close(settings.closeTimeout());
    }

    /**
     * Ends this instance: first its consumers, as {@link Subscription#close}, then the publisher, which refuses further
     * calls and appends what waits, then the relay; what waits in the outbox is left to other processes or the next start. The data sources stay open. Calling it again does nothing.
     *
     * @return {@code false} if not everything ended in time: events still waiting were failed, handlers left running
     */
    public boolean close(Duration timeout) {
        if (!closed.compareAndSet(false, true)) {
            return true;
        }
        long deadline = System.nanoTime() + timeout.toNanos();
        try {
            boolean inTime = consumers.close(deadline);
            inTime &= publisher.close(deadline);
            outbox.close();
            inTime &= relays.close(deadline);
            wakeUp.close();
            return inTime;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } finally {
            timer.shutdownNow();
            shards.close();
        }
    }

    /** Builds an instance; not thread-safe. */
    public static final class Builder {
        private final List<DataSource> dataSources;
        private Settings settings = Settings.defaults();
        private final List<ConsumerListener> listeners = new ArrayList<>();
        private final List<PublishListener> publishListeners = new ArrayList<>();
        private @Nullable DataSource preferredShard;
        private List<DataSource> outboxes = List.of();

        private Builder(List<? extends DataSource> dataSources) {
            this.dataSources = List.copyOf(dataSources);
            InvalidInputException.requireRange("dataSources", dataSources.size(), 1, 1_024);
        }

        /** Replaces all settings. */
        public Builder settings(Settings value) {
            settings = value;
            return this;
        }

        /** Adds a listener that is told what happens to this process's consumers. */
        public Builder listener(ConsumerListener value) {
            listeners.add(Objects.requireNonNull(value, "listener"));
            return this;
        }

        /** Adds a listener that is told what becomes of the events this process publishes. */
        public Builder publishListener(PublishListener value) {
            publishListeners.add(Objects.requireNonNull(value, "publishListener"));
            return this;
        }

        /**
         * Events without a key go to this one of the data sources while it is healthy; without this, to the healthy
         * shards in turn.
         */
        public Builder preferredShard(DataSource value) {
            if (!dataSources.contains(value)) {
                throw new InvalidInputException("preferredShard", "is none of the data sources");
            }
            preferredShard = value;
            return this;
        }

        /**
         * Databases besides the shards from which events are published inside transactions ({@link EventSql#outbox()}),
         * such as an application's own. Each gets the tables of the outbox, in the same schema, and is served by every
         * process that names it. Shards have an outbox anyway; naming one does nothing.
         *
         * @param values preferably pools; each takes 1 connection to relay and, in the process that does, 1 to listen
         *     (kept) and 1 for each shard that events go to
         */
        public Builder outbox(DataSource... values) {
            outboxes = List.of(values);
            return this;
        }

        private List<DataSource> withOutbox() {
            return Stream.concat(dataSources.stream(), outboxes.stream())
                    .distinct()
                    .toList();
        }

        /**
         * Opens the databases and migrates their schema. A shard that does not answer is used as soon as it does, if
         * the others know the cluster.
         *
         * @throws ShardIdentityException if a database is not what it is used as
         * @throws EventSqlException if the cluster cannot be known or made
         */
        public EventSql build() {
            return new EventSql(this);
        }
    }
}
