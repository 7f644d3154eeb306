package io.eventsql;

import io.eventsql.internal.aggregate.Aggregates;
import io.eventsql.internal.append.KeyReader;
import io.eventsql.internal.append.LatestReader;
import io.eventsql.internal.append.PublishContext;
import io.eventsql.internal.append.PublishListeners;
import io.eventsql.internal.append.Publisher;
import io.eventsql.internal.consume.CloseDeadline;
import io.eventsql.internal.consume.ClosingSteps;
import io.eventsql.internal.consume.ConsumerStatusReader;
import io.eventsql.internal.consume.Consumers;
import io.eventsql.internal.consume.Listeners;
import io.eventsql.internal.consume.RangeReader;
import io.eventsql.internal.erase.Eraser;
import io.eventsql.internal.grow.Grower;
import io.eventsql.internal.move.ShardMover;
import io.eventsql.internal.pool.PoolCheck;
import io.eventsql.internal.relay.OutboxPublisher;
import io.eventsql.internal.relay.Relays;
import io.eventsql.internal.relay.ScheduledEvents;
import io.eventsql.internal.retain.CompactionKeeper;
import io.eventsql.internal.retain.CompactionReader;
import io.eventsql.internal.retain.DeadProducers;
import io.eventsql.internal.retain.RetentionKeeper;
import io.eventsql.internal.retain.RetentionReader;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.retain.StreamCleaner;
import io.eventsql.internal.retain.StreamDeleter;
import io.eventsql.internal.shard.Replicas;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.wake.WakeUp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Entry point of the library: streams of events in one or several PostgreSQL databases (shards). Thread-safe; a process
 * needs one instance per cluster, created when it starts and closed when it ends.
 *
 * <p>Maximum number of connections that the library uses at the same time from the pool of each shard:
 *
 * <ul>
 *   <li>{@link Settings#appendConnections()} to append, 1 to send signals, 1 for background work
 *   <li>2 to relay the shard's outbox, of which 1 listens for signals permanently
 *   <li>2 for each other shard and 1 for each standalone outbox, to transfer events of one database's outbox to another
 *       database
 *   <li>4 to consume: 1 listens for signals permanently, 1 each to fetch, to commit offsets and to renew leases
 *   <li>with a replica of the shard, 1 to measure its lag and 1 to consume from it
 *   <li>for each transactional consumer its {@link ConsumerSpec#concurrency()}, at most the number of its stream's
 *       partitions
 * </ul>
 *
 * The pool of a standalone outbox needs 2 to relay it and 1 for each shard. Each application thread inside a method of
 * this class uses 1 more. A smaller pool is reported by a warning: work then waits for connections.
 *
 * <p>At least required are 1 connection to publish and to relay, 2 to consume, and with transactional consumers 3 and those
 * of their handlers. A consumer for which a pool is too small is refused. A pool whose size cannot be determined is not
 * checked, and reported by a warning.
 */
public final class EventSql implements AutoCloseable {
    /** The maximum of {@link #scheduledEvents}. */
    public static final int SCHEDULED_EVENTS_MAX = 10_000;

    /** The maximum number of events of one {@link #readKey(String, String, EventPosition, int)}. */
    public static final int KEY_EVENTS_MAX = 10_000;

    private static final long OPEN_MISSING_EVERY_MS = 1_000;
    private static final Duration REPORT_LEASE_MIN = Duration.ofMillis(100);
    private static final Duration REPORT_LEASE_MAX = Duration.ofHours(1);

    private final Settings settings;
    private final Shards shards;
    private final Replicas replicas;
    private final StreamRegistry streams;
    private final WakeUp wakeUp;
    private final Publisher publisher;
    private final Relays relays;
    private final OutboxPublisher outbox;
    private final ScheduledEvents scheduled;
    private final Consumers consumers;
    private final ConsumerStatusReader consumerStatus;
    private final RangeReader reader;
    private final LatestReader latest;
    private final KeyReader keys;
    private final Grower grower;
    private final ShardMover mover;
    private final StreamCleaner cleaner;
    private final StreamDeleter deleter;
    private final RetentionReader retention;
    private final Eraser eraser;
    private final CompactionReader compaction;
    private final Aggregates aggregates;
    private final PoolCheck pools;
    private final AtomicBoolean closed = new AtomicBoolean();

    EventSql(EventSqlBuilder builder) {
        settings = builder.settings;
        shards = Shards.open(builder.dataSources, builder.shardNames, settings, builder.addShards);
        replicas = new Replicas(builder.replicas, settings);
        streams = new StreamRegistry(shards);
        wakeUp = new WakeUp(shards, settings);
        SegmentKeeper segments = new SegmentKeeper();
        shards.all().forEach(shard -> shard.addAnchors(segments::forget));
        PublishListeners publishListeners = new PublishListeners(builder.publishListeners);
        relays = new Relays(shards, streams, settings, segments, wakeUp, publishListeners, builder.outboxes);
        outbox = new OutboxPublisher(streams, shards, settings, relays, builder.withOutbox());
        scheduled = new ScheduledEvents(relays, shards);
        UUID producer = UUID.randomUUID();
        publisher = new Publisher(
                shards,
                builder.preferredShard,
                new PublishContext(producer, settings, streams, segments, wakeUp, publishListeners),
                relays::scheduled);
        consumers =
                new Consumers(shards, streams, replicas, settings, segments, wakeUp, new Listeners(builder.listeners));
        consumerStatus = new ConsumerStatusReader(shards);
        reader = new RangeReader(shards, streams, replicas);
        latest = new LatestReader(shards, streams, settings);
        keys = new KeyReader(shards, streams, settings);
        grower = new Grower(shards, streams, wakeUp);
        mover = new ShardMover(shards, streams, wakeUp);
        cleaner = new StreamCleaner(shards, streams, scheduled::deleteOf);
        deleter = new StreamDeleter(shards, streams, scheduled::deleteOf);
        retention = new RetentionReader(shards, streams);
        eraser = new Eraser(shards, streams, relays);
        compaction = new CompactionReader(shards);
        shards.openMissingInBackground(OPEN_MISSING_EVERY_MS);
        new DeadProducers(producer).removeInBackground(shards);
        RetentionKeeper.runInBackground(shards);
        CompactionKeeper.runInBackground(shards);
        relays.start();
        shards.all().forEach(replicas::of); // which starts those of the shards that have been reached
        pools = new PoolCheck(
                settings,
                shards::dataSources,
                relays.standaloneOutboxes(),
                stream -> {
                    StreamSpec spec = streams.require(stream);
                    return shards.all().stream()
                            .mapToInt(shard -> shard.streams().map(spec).partitions())
                            .max()
                            .orElse(spec.partitions());
                },
                !replicas.isEmpty());
        pools.check();
        aggregates = new Aggregates(
                shards, streams, settings.closeTimeout(), this::subscribeTransactionalBatch, this::consumer);
    }

    /**
     * Returns a builder for an instance with one shard.
     *
     * @param dataSource preferably a connection pool
     */
    public static EventSqlBuilder builder(DataSource dataSource) {
        return new EventSqlBuilder(List.of(InvalidInputException.requireGiven("dataSource", dataSource)), List.of());
    }

    /**
     * Returns a builder for an instance over the databases of a cluster, in any order: each database records which shard
     * it is. If all are new, they become a cluster.
     *
     * @param dataSources one for each shard, preferably connection pools; no duplicates
     */
    public static EventSqlBuilder builder(List<? extends DataSource> dataSources) {
        InvalidInputException.requireGiven("dataSources", dataSources);
        for (int i = 0; i < dataSources.size(); i++) {
            InvalidInputException.requireGiven("dataSources[" + i + "]", dataSources.get(i));
        }
        return new EventSqlBuilder(dataSources, List.of());
    }

    /**
     * Returns a builder for an instance over the databases of a cluster, in any order, with a name for each shard. The
     * names appear in log messages, {@link ShardInfo} and {@link BufferState}. They belong to this instance and are not
     * stored; other processes may use other ones.
     *
     * @param shards the data source of each shard by its name: 1 to 60 letters, digits, dots, hyphens and underscores
     */
    public static EventSqlBuilder builder(Map<String, ? extends DataSource> shards) {
        InvalidInputException.requireGiven("shards", shards);
        List<String> names = new ArrayList<>();
        List<DataSource> dataSources = new ArrayList<>();
        shards.forEach((name, dataSource) -> {
            names.add(Names.requireShardName("shards", name));
            dataSources.add(InvalidInputException.requireGiven("shards[" + name + "]", dataSource));
        });
        return new EventSqlBuilder(dataSources, names);
    }

    /**
     * Creates a stream on every shard. An existing stream stays as it is; settings of it that differ are logged as a warning.
     *
     * @throws InvalidInputException if it exists with another number of partitions
     * @throws EventSqlException if it is new and a shard is unavailable; retry the call
     */
    public void createStream(StreamSpec spec) {
        streams.create(InvalidInputException.requireGiven("stream", spec));
    }

    /**
     * Changes a stream on every shard while publishers and consumers continue: its retention, its compaction,
     * the size of new segments, and whether it has a view for JSON values. Once this method returns, no event is removed by the
     * former settings.
     *
     * @param spec all settings of the stream, such as one of {@link #streams} with changes
     * @throws InvalidInputException if the stream was created with another number of partitions, which only {@link #grow} raises,
     *     has another storage or key tracking, or is to get compaction although its keys have moved
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if it was not changed on a shard, because that is unavailable, this role does not own the
     *     stream, or other views use the JSON view that is to be dropped; retry the call
     */
    public void alterStream(StreamSpec spec) {
        streams.alter(InvalidInputException.requireGiven("stream", spec));
    }

    /**
     * Returns the segments with events of a stream, and which of them retention removes in its next pass, or when. A dry run
     * of {@link StreamSpec#retention()}: changes nothing.
     *
     * @return ordered by shard, partition and offset
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable or was not given to this instance
     */
    public List<RetainedSegment> retentionPlan(String stream) {
        return retention.plan(requireStream(stream));
    }

    /**
     * Returns what retention has removed from a shard, and what it has still to remove.
     *
     * @param shard the shard's number
     * @throws EventSqlException if the shard is unavailable
     */
    public RetentionStatus retentionStatus(int shard) {
        InvalidInputException.requireRange("shard", shard, 0, shards.size() - 1L);
        return retention.status(shard);
    }

    /**
     * Returns what compaction has removed from a shard, and what it has still to do.
     *
     * @param shard the shard's number
     * @throws EventSqlException if the shard is unavailable
     */
    public CompactionStatus compactionStatus(int shard) {
        InvalidInputException.requireRange("shard", shard, 0, shards.size() - 1L);
        return compaction.status(shard);
    }

    /**
     * Returns the streams of all shards that respond, ordered by name.
     *
     * @throws EventSqlException if none responds and no stream is known
     */
    public List<StreamSpec> streams() {
        return streams.all();
    }

    /** Returns the shards that have been available since this instance was created, ordered by number. */
    public List<ShardInfo> shards() {
        return shards.infos();
    }

    /**
     * Returns what {@link #grow} would do, and how far an earlier call has come. Changes nothing.
     *
     * @param partitions the number of partitions on each shard
     * @throws InvalidInputException as {@link #grow}
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable or was not given to this instance
     */
    public Growth previewGrowth(String stream, int partitions) {
        return grower.preview(requireStream(stream), partitions);
    }

    /**
     * Gives a stream more partitions on each shard, while it is used. The order of the events of each key is kept: a consumer
     * handles a new partition only after it has handled the earlier events of its keys in the partitions that they came from. About
     * as many keys move as the new partitions' share of all; publishers wait for one short transaction per shard, and find out
     * by themselves.
     *
     * <p>Versions of keys continue, and a compacted stream keeps the last event of each key.
     *
     * <p>The shards grow one after the other, after all have been prepared. Each call can be repeated: if the process dies or a
     * shard is unavailable, any process completes it with the same call. An interrupt ends it after the current step. {@link
     * #previewGrowth} shows the progress to every process; {@link #cancelGrowth} removes what shards that have not grown were
     * prepared with.
     *
     * <p>Before the first growth, all processes must have at least the release that introduced it: publishers of earlier ones are
     * rejected. {@link StreamSpec#partitions()} remains the number with which the stream was created.
     *
     * @param partitions the number of partitions on each shard, with those of keys that have moved there; at most {@value
     *     StreamSpec#PARTITIONS_MAX}. A shard that has more keeps them, and one that all keys have left gets none
     * @return the result
     * @throws InvalidInputException if fewer partitions are requested than the stream was created with, it has some for copies of
     *     failed events, or its keys are being moved between shards
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable or locks are not available; repeat the call
     */
    public Growth grow(String stream, int partitions) {
        return grower.grow(requireStream(stream), partitions);
    }

    /**
     * Removes the partitions that a growth has added on shards that have not grown. Does nothing on the others.
     *
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable, or sessions read the stream all the time; repeat the call
     */
    public void cancelGrowth(String stream) {
        grower.cancel(requireStream(stream));
    }

    /**
     * Returns what {@link #moveShards} would do, and how far an earlier call has come. Changes nothing.
     *
     * @param shards the numbers of the shards that keys are to belong to
     * @throws InvalidInputException if the process was not given one of the shards
     * @throws EventSqlException if a shard is unavailable, or keys are being moved to other shards
     */
    public ShardMove previewShards(Collection<Integer> shards) {
        return mover.preview(InvalidInputException.requireGiven("shards", shards));
    }

    /**
     * Returns the move that is not complete, whichever process began it.
     *
     * @throws EventSqlException if a shard is unavailable, or this process was not given all shards
     */
    public Optional<ShardMove> currentShardMove() {
        return mover.current();
    }

    /**
     * Has the keys of all streams belong to the given shards, in equal shares, while they are published and consumed: shards join
     * ({@link EventSqlBuilder#addShards} first), or leave. Only the keys that must move do. What is stored stays where it is; later
     * events of a key that moves are stored on its new shard. Consumers handle the events of each key in their order: the former
     * shard's first. A shard that has left accepts no more events, and can be read and consumed until it is empty; then {@link #removeShard}
     * removes it.
     *
     * <p>Streams with compaction, those that track their keys, and those that a sink of an engine has written to exactly once stay
     * on their shards ({@link ShardMove#staying()}). A shard that leaves still accepts events of these, if it has keys of them.
     *
     * <p>Before it, all processes must have at least the release that introduced it, and be given the databases of all shards: one
     * that was not given a shard fails to publish the keys that belong there, with an {@link EventNotStoredException} that names it.
     *
     * <p>Each call can be repeated: if the process dies or a shard fails, another call, by any process, completes it. Until the
     * first shard has closed slots, {@link #cancelShardMove} cancels it.
     *
     * @param shards the numbers of the shards that keys are to belong to
     * @return the move as it is afterwards
     * @throws InvalidInputException if the process was not given one of the shards
     * @throws EventSqlException if a shard is unavailable, or keys are being moved to other shards; repeat the call to continue
     */
    public ShardMove moveShards(Collection<Integer> shards) {
        return mover.move(InvalidInputException.requireGiven("shards", shards));
    }

    /**
     * Cancels a move of keys to other shards, unless a shard has begun to close slots. Does nothing if there is none.
     *
     * @throws EventSqlException if it is too late, or a shard is unavailable; repeat the call then
     */
    public void cancelShardMove() {
        mover.cancel();
    }

    /**
     * Removes a shard that keys have left: no process needs its database any more. It must not have any event: neither in streams,
     * whose retention has removed them, nor in its outbox, scheduled or parked. Its number is not used again. A database that was
     * added and has had no keys is removed in the same way. A shard that keys of streams stay on cannot be removed.
     *
     * @param shard its number
     * @throws InvalidInputException if there is no such shard
     * @throws EventSqlException if it cannot be removed yet, for the reason that it names, or if a shard is unavailable; repeat the call
     *     then
     */
    public void removeShard(int shard) {
        mover.remove(shard);
    }

    /**
     * Returns what {@link #clear} would delete. Changes nothing.
     *
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable
     */
    public ClearPreview previewClear(String stream) {
        return cleaner.preview(requireStream(stream));
    }

    /**
     * Permanently deletes all events of a stream on every shard and frees their disk space. The stream and its offsets
     * remain: publishers need not stop, and a consumer that has handled all events continues with the next one. For one
     * that has not, {@link OutOfRangePolicy} applies. Scheduled events are deleted, too; parked events and events waiting in
     * outboxes are not.
     *
     * <p>An append to a partition waits briefly while it is being cleared. If another session reads a segment for
     * seconds, clearing that segment is retried. If interrupted at any point, the log stays consistent: get a new {@link
     * #previewClear} and call this method again.
     *
     * @param confirmation {@link ClearPreview#confirmation()}
     * @return the number of events on all shards when clearing began
     * @throws InvalidInputException if the confirmation is for another stream, or the stream was cleared since; nothing
     *     was deleted
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a partition is assigned to a member of a consumer; nothing was deleted. Or if a shard
     *     is unavailable or a reader blocks a segment; some events may have been deleted.
     */
    public long clear(String stream, String confirmation) {
        return cleaner.clear(requireStream(stream), InvalidInputException.requireGiven("confirmation", confirmation));
    }

    /**
     * Returns what {@link #deleteStream} would delete. Changes nothing.
     *
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable
     */
    public DeletePreview previewDeleteStream(String stream) {
        return deleter.preview(requireStream(stream));
    }

    /**
     * Permanently deletes a stream on every shard: its events and tables, its consumers with their offsets and parked events, and
     * what is scheduled.
     * Other streams are not affected. Stop its consumers and what publishes to it first: a later call to publish to it fails at
     * once with {@link UnknownStreamException}, alone or as the cause, and an event for it in the outbox of another database
     * is refused ({@link OutboxBacklog#refusedEvents()}). Nothing but {@link #createStream} creates it again, empty and with
     * offsets from 0.
     *
     * <p>Tables are dropped a few at a time, so that their number does not matter. If interrupted at any point, the stream
     * does not exist any more, and a stream of its name cannot be created: get a new {@link #previewDeleteStream} and call
     * this method again.
     *
     * @param confirmation {@link DeletePreview#confirmation()}
     * @return the number of events on all shards when the deletion began
     * @throws InvalidInputException if the confirmation is for another stream, or the stream was created anew since; nothing
     *     was deleted
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a partition is assigned to a member of a consumer, or events for it wait in the outbox of a
     *     shard; nothing was deleted. Or if a shard is unavailable, a transaction reads the stream, this role does not own it,
     *     or a view of the application uses its table; retry the call
     */
    public long deleteStream(String stream, String confirmation) {
        return deleter.delete(requireStream(stream), InvalidInputException.requireGiven("confirmation", confirmation));
    }

    /**
     * Erases the values of a key's events, with the defaults of {@link ErasureSpec}. See {@link #erase(ErasureSpec)}.
     */
    public Erasure erase(String stream, String key) {
        return erase(ErasureSpec.of(stream, key));
    }

    /**
     * Erases the values, and chosen headers, of a key's events: in the stream, parked, dead-lettered, scheduled and waiting in
     * outboxes, on all shards and the outboxes of this instance. Offsets, keys and times remain. An erased event is not
     * passed to handlers; {@link #read} returns it with an empty value and {@link StoredEvent#isErased()}.
     *
     * <p>What is published after this call began is not erased, except for events that are stored while events of the key
     * that were published before are on their way to another database.
     *
     * <p>Works in short transactions that do not hinder publishers and consumers. The progress is stored after each, so if
     * this process ends, {@link #resumeErasure} continues in any process with the same outboxes. Another call for the same
     * key replaces an erasure that has not ended, if it erases the same headers or more.
     * Returns when the values are gone from the files of the databases, too, or when the timeout of the erasure has passed
     * without any progress, because something was in the way: then {@link Erasure.Part#waitingFor()} names it, and a later call continues.
     *
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a database is unavailable or refuses the erasure; repeat the call
     */
    public Erasure erase(ErasureSpec spec) {
        return eraser.erase(InvalidInputException.requireGiven("erasure", spec));
    }

    /**
     * Continues an erasure that has not ended, with the defaults of {@link ErasureSpec}.
     *
     * @throws EventSqlException if no shard has it, or a database is unavailable
     */
    public Erasure resumeErasure(UUID id) {
        return eraser.resume(InvalidInputException.requireGiven("id", id));
    }

    /**
     * Returns the erasures that have not ended, and those of the last 30 days, the newest first.
     *
     * @throws EventSqlException if a database is unavailable
     */
    public List<Erasure> erasures() {
        return eraser.list();
    }

    /** Returns the publisher of this instance. */
    public EventPublisher publisher() {
        return publisher;
    }

    /**
     * Cancels an event scheduled by {@link EventPublisher#schedule} or {@link Outbox#schedule}, in any process.
     *
     * @return {@code true} if the event was still scheduled, so that it will not be appended; {@code false} if it was appended,
     *     or cancelled, or its transaction was not committed yet
     * @throws EventSqlException if a database is unavailable and the event is in none of the others; retry the call. An
     *     attempt that was in doubt may have cancelled it, so that the next call returns {@code false}. Also if the event is in no
     *     database, and that of another shard was not given to this instance
     */
    public boolean cancelScheduled(UUID id) {
        return scheduled.cancel(InvalidInputException.requireGiven("id", id));
    }

    /**
     * Returns events that are scheduled, in the databases of all shards and outboxes, ordered by the time at which they are due
     * and their ids. Events that are due earlier than the first one returned are read, too, if they are of other streams.
     *
     * @param stream {@code null}: of all streams
     * @param after the id of the last event of the page before; {@code null}: from the first event on
     * @param max the maximum number of events, 1 to {@value #SCHEDULED_EVENTS_MAX}
     * @throws EventSqlException if a database is unavailable, or that of a shard was not given to this instance
     */
    public List<ScheduledEvent> scheduledEvents(@Nullable String stream, @Nullable UUID after, int max) {
        InvalidInputException.requireRange("max", max, 1, SCHEDULED_EVENTS_MAX);
        return scheduled.list(stream, after, max);
    }

    /**
     * Returns how many events are scheduled in each database, first those of the shards by number, then those of standalone
     * outboxes. Its cost does not depend on the number of events.
     *
     * @throws EventSqlException if a database is unavailable, or that of a shard was not given to this instance
     */
    public List<ScheduleBacklog> scheduleBacklogs() {
        return scheduled.backlogs();
    }

    /**
     * Returns how many events are scheduled in one database, even if another one is unavailable.
     *
     * @param database one of {@link Outbox#names()}
     * @throws InvalidInputException if there is no such database
     * @throws EventSqlException if the database is unavailable
     */
    public ScheduleBacklog scheduleBacklog(String database) {
        if (!outbox.names().contains(InvalidInputException.requireGiven("database", database))) {
            throw new InvalidInputException("database", "must be one of " + outbox.names() + ", but is " + database);
        }
        return scheduled.backlog(database);
    }

    /** Returns the state of the publish buffer of each shard, ordered by number, including unavailable shards. */
    public List<BufferState> buffers() {
        return publisher.buffers();
    }

    /**
     * Returns how many callbacks of {@link PublishListener} were dropped since this instance was created, because the
     * listeners were too slow.
     */
    public long droppedPublishCallbacks() {
        return publisher.droppedCallbacks();
    }

    /** Returns the outbox of this instance, which publishes inside transactions of the application. */
    public Outbox outbox() {
        return outbox;
    }

    /**
     * Starts a member of a consumer in this process. Its handler receives the stream's events one by one, starting at the
     * consumer's committed offsets. A consumer may have any number of members, in this and other processes, which share
     * its partitions.
     *
     * @throws InvalidInputException if the pool of a shard is too small; names the required number of connections
     * @throws UnknownStreamException if the stream does not exist
     */
    public Subscription subscribe(ConsumerSpec spec, EventHandler handler) {
        requireHandler(handler);
        return pools.start(requireSpec(spec), false, () -> consumers.subscribe(spec, handler));
    }

    /** Starts a member as {@link #subscribe} does, with a handler of batches. */
    public Subscription subscribeBatch(ConsumerSpec spec, EventBatchHandler handler) {
        requireHandler(handler);
        return pools.start(requireSpec(spec), false, () -> consumers.subscribeBatch(spec, handler));
    }

    /**
     * Starts a member as {@link #subscribe} does, with a handler whose writes to the event's shard are committed together
     * with the consumer's offset: exactly once. Uses up to {@link ConsumerSpec#concurrency()} connections of each pool.
     *
     * @throws InvalidInputException if {@link ConsumerSpec#keyConcurrency()} is not 1, or the pool of a shard is too small
     */
    public Subscription subscribeTransactional(ConsumerSpec spec, TransactionalEventHandler handler) {
        requireHandler(handler);
        return pools.start(requireSpec(spec), true, () -> consumers.subscribeTransactional(spec, null, handler));
    }

    /**
     * Starts a transactional member whose transactions are begun and committed by the given boundary, such as a
     * framework's transaction manager.
     *
     * @param boundary begins and commits transactions in the event's shard
     */
    public Subscription subscribeTransactional(
            ConsumerSpec spec, TransactionBoundary boundary, TransactionalEventHandler handler) {
        InvalidInputException.requireGiven("boundary", boundary);
        requireHandler(handler);
        return pools.start(requireSpec(spec), true, () -> consumers.subscribeTransactional(spec, boundary, handler));
    }

    /**
     * Starts a member as {@link #subscribeTransactional(ConsumerSpec, TransactionalEventHandler)} does, with a handler of
     * batches.
     */
    public Subscription subscribeTransactionalBatch(ConsumerSpec spec, TransactionalEventBatchHandler handler) {
        requireHandler(handler);
        return pools.start(requireSpec(spec), true, () -> consumers.subscribeTransactionalBatch(spec, null, handler));
    }

    /**
     * Starts a transactional member with a handler of batches whose transactions are begun and committed by the given
     * boundary.
     *
     * @param boundary begins and commits transactions in the event's shard
     */
    public Subscription subscribeTransactionalBatch(
            ConsumerSpec spec, TransactionBoundary boundary, TransactionalEventBatchHandler handler) {
        InvalidInputException.requireGiven("boundary", boundary);
        requireHandler(handler);
        return pools.start(
                requireSpec(spec), true, () -> consumers.subscribeTransactionalBatch(spec, boundary, handler));
    }

    /**
     * Starts a member of a continuous aggregate: a transactional consumer that keeps counts, sums, minima, maxima and averages by key
     * and window in tables of the application, on each shard those of its own events. It begins with the first event of the log. It
     * may have any number of members, in this and other processes, which share its partitions. An event for which a function of the
     * declaration fails is retried, and holds up its partition, until it succeeds.
     *
     * <p>View and tables are created if they do not exist; a role that may not do that gets an error with the statements for an
     * administrator, which {@link #continuousAggregateSql} returns, too.
     *
     * @throws InvalidInputException if it exists with another declaration, or the pool of a shard is too small
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if no shard is available, or the role may not create or write the tables
     */
    public ContinuousAggregate startContinuousAggregate(ContinuousAggregateSpec spec) {
        return aggregates.start(InvalidInputException.requireGiven("aggregate", spec));
    }

    /**
     * Returns the statements that create view and tables of a continuous aggregate, and grant a role what its members need: to be run
     * on each shard by an administrator, if the role of the members may not create tables. Needs no database.
     *
     * @param role the role of the members, which also has {@code eventsql_consumer}
     */
    public static String continuousAggregateSql(ContinuousAggregateSpec spec, String role) {
        return Aggregates.script(
                InvalidInputException.requireGiven("aggregate", spec),
                InvalidInputException.requireGiven("role", role));
    }

    /**
     * Drops view and tables of a continuous aggregate on every shard, and its consumers. Has no effect if it does not exist. Close its
     * members in all processes first: they would create it again.
     *
     * @param spec only its name, stream and table are used
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if a shard is unavailable, this role does not own the tables, or a view uses them; repeat the call
     */
    public void dropContinuousAggregate(ContinuousAggregateSpec spec) {
        aggregates.drop(InvalidInputException.requireGiven("aggregate", spec));
    }

    private static ConsumerSpec requireSpec(ConsumerSpec spec) {
        return InvalidInputException.requireGiven("consumer", spec);
    }

    private static <T> T requireHandler(T handler) {
        return InvalidInputException.requireGiven("handler", handler);
    }

    private static String requireStream(String stream) {
        return InvalidInputException.requireGiven("stream", stream);
    }

    /**
     * Returns why threads of the library in this process fail unexpectedly, by the names of the threads; empty as long as
     * all work. A failed task is repeated, and its thread leaves the result once that succeeds.
     */
    public static Map<String, Throwable> threadFailures() {
        return ServiceThread.failures();
    }

    /**
     * Returns how often tasks of the library's threads in this process have failed unexpectedly since it started. Such a task
     * is repeated; {@link #threadFailures} returns those that still fail.
     */
    public static long threadFailureCount() {
        return ServiceThread.failureCount();
    }

    /** Returns the members started by this instance and not closed since, in no particular order. */
    public List<Subscription> subscriptions() {
        return consumers.subscriptions();
    }

    /**
     * Returns the state of all consumers on one shard, whether or not they have members, in the order of their creation.
     * The cost is bounded by the number of their partitions and does not depend on the number of stored events.
     *
     * @param shard the shard's number
     * @param max the maximum number of consumers, 1 to {@value ConsumerSummary#CONSUMERS_MAX}
     * @throws EventSqlException if the shard is unavailable
     */
    public List<ConsumerSummary> consumers(int shard, int max) {
        InvalidInputException.requireRange("shard", shard, 0, shards.size() - 1L);
        InvalidInputException.requireRange("max", max, 1, ConsumerSummary.CONSUMERS_MAX);
        return consumerStatus.summaries(shard, max);
    }

    /**
     * Returns the state of all consumers of all streams, wherever their members run, with one statement on each shard. A
     * shard that is unavailable is named in the result. The cost is bounded by the number of the consumers' partitions and
     * does not depend on the number of stored events; the first {@value ConsumerSummary#CONSUMERS_MAX} consumers of each
     * shard are read.
     */
    public ConsumerOverview consumers() {
        return consumerStatus.overview();
    }

    /**
     * Returns the state of all consumers on one shard, as {@link #consumers(int, int)} does, if this instance is the one that
     * reports it. Of all instances that call this method for a database, one at a time does, so that values of several
     * processes can be added. For meters and alerts: any process can report, also one that only publishes, so consumers
     * whose members are all dead are reported, too.
     *
     * <p>Each call renews the lease of the reporting instance. Call it about three times per lease. When the reporting
     * instance is closed, or its lease expires, the next caller reports.
     *
     * @param shard the shard's number
     * @param max the maximum number of consumers, 1 to {@value ConsumerSummary#CONSUMERS_MAX}
     * @param lease how long the result may be shown, from the begin of this call on; 100 ms to 1 hour
     * @return empty if another instance reports
     * @throws EventSqlException if the shard is unavailable
     */
    public Optional<List<ConsumerSummary>> reportConsumers(int shard, int max, Duration lease) {
        InvalidInputException.requireRange("shard", shard, 0, shards.size() - 1L);
        InvalidInputException.requireRange("max", max, 1, ConsumerSummary.CONSUMERS_MAX);
        Settings.requireDuration("lease", lease, REPORT_LEASE_MIN, REPORT_LEASE_MAX);
        return consumerStatus.report(shard, max, lease);
    }

    /**
     * Returns the control of a consumer, no matter which processes its members run in.
     *
     * @throws UnknownStreamException if the stream does not exist
     */
    public ConsumerControl consumer(String stream, String name) {
        Names.requireName("consumer.name", name, ConsumerSpec.NAME_LENGTH_MAX);
        return consumers.control(requireStream(stream), name);
    }

    /**
     * Returns the last event of a key, as of this call: after a publish call has returned, its event or a later one.
     *
     * <p>Requires compaction, which keeps an index of the keys of each segment. The segments of the key's partition are
     * searched from the newest to the oldest, each by one lookup in its index, until the event is found. So the call is cheap
     * for a key that was published lately, and costs a lookup in every segment for a key that never was. Needs the right to
     * read the stream.
     *
     * @return empty if the log has no event of the key, or its last one is a tombstone. An erased event is returned with
     *     {@link StoredEvent#isErased()} and without a value.
     * @throws InvalidInputException if the stream has no compaction, or the key can never have been published
     * @throws UnknownStreamException if the stream does not exist
     * @throws UndecodableEventException if the event's headers cannot be decoded
     * @throws EventSqlException if the key's shard is unavailable, or if a segment of more than 10,000 events has no index yet,
     *     because it began before compaction was switched on: it gets one after it has ended
     */
    public Optional<StoredEvent> latest(String stream, String key) {
        return latest.latest(requireStream(stream), InvalidInputException.requireGiven("key", key));
    }

    /**
     * Returns the version of a key: how many events of it were ever stored in the stream. Those of a transaction count when they
     * have arrived from the outbox.
     *
     * @return 0 if the key never had an event
     * @throws InvalidInputException if the stream does not count the events of keys, or the key can never have been published
     * @throws UnknownStreamException if the stream does not exist
     * @throws EventSqlException if the key's shard is unavailable
     */
    public long keyVersion(String stream, String key) {
        return keys.version(requireStream(stream), InvalidInputException.requireGiven("key", key));
    }

    /**
     * Reads the events of a key in order that the log still has, as many as a page has, which may not be all: see {@link
     * #readKey(String, String, EventPosition, int)}. {@link #loadAggregate(String, String)} returns all of them.
     */
    public KeyEvents readKey(String stream, String key) {
        return readKey(stream, key, KEY_EVENTS_MAX);
    }

    /** Reads the first events of a key: see {@link #readKey(String, String, EventPosition, int)}. */
    public KeyEvents readKey(String stream, String key, int maxEvents) {
        return readKey(stream, key, Optional.empty(), maxEvents);
    }

    /**
     * Reads events of a key in order, and its version. The cost depends on the number of events that are returned and of the
     * segments that have them, not on the size of the stream. Needs the right to read the stream.
     *
     * @param from the position of the first event, such as {@link KeyEvents#next}, or one before it
     * @param maxEvents the maximum number of events, 1 to {@value #KEY_EVENTS_MAX}. Fewer are returned once their values, keys
     *     and headers reach {@link ConsumerSpec#DEFAULT_PAGE_BYTES}, as by {@link #read(EventPosition, int)}. {@link
     *     KeyEvents#next} is where to continue.
     * @throws InvalidInputException if the stream has no index of keys, or the key can never have been published
     * @throws UnknownStreamException if the stream does not exist
     * @throws UndecodableEventException if an event's headers cannot be decoded
     * @throws EventSqlException if the key's shard is unavailable
     */
    public KeyEvents readKey(String stream, String key, EventPosition from, int maxEvents) {
        return readKey(stream, key, Optional.of(InvalidInputException.requireGiven("from", from)), maxEvents);
    }

    private KeyEvents readKey(String stream, String key, Optional<EventPosition> from, int maxEvents) {
        InvalidInputException.requireRange("maxEvents", maxEvents, 1, KEY_EVENTS_MAX);
        return keys.read(
                requireStream(stream),
                InvalidInputException.requireGiven("key", key),
                from,
                maxEvents,
                ConsumerSpec.DEFAULT_PAGE_BYTES);
    }

    /**
     * Returns all events of a key, to rebuild its state from, and its version. They are read in pages, and all of them are in
     * memory: of a key with many or large events, keep snapshots.
     *
     * @throws InvalidInputException if the stream has no index of keys, or the key can never have been published
     * @throws UnknownStreamException if the stream does not exist
     * @throws UndecodableEventException if an event's headers cannot be decoded
     * @throws EventSqlException if the key's shard is unavailable
     */
    public Aggregate loadAggregate(String stream, String key) {
        return load(stream, key, Optional.empty());
    }

    /**
     * Returns the last snapshot of a key, all events since, and the key's version.
     *
     * @param snapshots a stream with compaction that has the snapshots of {@code stream} ({@link Aggregate#newSnapshot}), with the
     *     same keys. A stream that was created anew needs a new one.
     * @throws InvalidInputException if the stream has no index of keys, the other one no compaction, or the key can never have
     *     been published
     * @throws UnknownStreamException if one of the streams does not exist
     * @throws UndecodableEventException if an event's headers cannot be decoded
     * @throws EventSqlException if the key's shard is unavailable, or the last event of the key in {@code snapshots} is no
     *     snapshot
     */
    public Aggregate loadAggregate(String stream, String key, String snapshots) {
        return load(stream, key, latest(snapshots, key).filter(event -> !event.isErased()));
    }

    private Aggregate load(String stream, String key, Optional<StoredEvent> snapshot) {
        List<StoredEvent> events = new ArrayList<>();
        Optional<EventPosition> from = snapshot.flatMap(found -> Aggregate.next(stream, found));
        KeyEvents page = readKey(stream, key, from, KEY_EVENTS_MAX);
        events.addAll(page.events());
        while (page.next().isPresent()) {
            page = readKey(stream, key, page.next(), KEY_EVENTS_MAX);
            events.addAll(page.events());
        }
        return new Aggregate(key, page.version(), snapshot, events);
    }

    /**
     * Reads events of one partition in order, without a consumer.
     *
     * @param from the position of the first event; at the partition's head the result is empty
     * @param maxEvents the maximum number of events, 1 to {@value ConsumerSpec#PAGE_EVENTS_MAX}; fewer are returned at the
     *     end of the log, before an event that is missing or cannot be decoded, or once their values, keys and headers
     *     reach {@link ConsumerSpec#DEFAULT_PAGE_BYTES}
     * @throws UnknownStreamException if the stream does not exist
     * @throws InvalidInputException if there is no such shard or partition
     * @throws OffsetOutOfRangeException if the offset is below the start of the log or beyond its head
     * @throws EventsMissingException if the first event is missing from the log
     * @throws UndecodableEventException if the first event cannot be decoded
     * @throws EventSqlException if the shard is unavailable
     */
    public List<StoredEvent> read(EventPosition from, int maxEvents) {
        return read(from, maxEvents, ReadFrom.PRIMARY);
    }

    /**
     * Reads events as {@link #read(EventPosition, int)} does, from the replica of the shard if the caller allows it. What the
     * replica does not have, or not yet, is read from the primary: a result that is empty, and a call while the replica is
     * unavailable or too far behind.
     *
     * @param readFrom which server to read from
     */
    public List<StoredEvent> read(EventPosition from, int maxEvents, ReadFrom readFrom) {
        InvalidInputException.requireGiven("position", from);
        InvalidInputException.requireGiven("position.stream", from.stream());
        InvalidInputException.requireRange("maxEvents", maxEvents, 1, ConsumerSpec.PAGE_EVENTS_MAX);
        InvalidInputException.requireRange("position.offset", from.offset(), 0, Long.MAX_VALUE);
        InvalidInputException.requireGiven("readFrom", readFrom);
        return reader.read(from, maxEvents, ConsumerSpec.DEFAULT_PAGE_BYTES, readFrom);
    }

    /**
     * Returns the state of the replicas ({@link EventSqlBuilder#replica}), by shard; without those of shards that have not been
     * reached yet. Does not access a database.
     */
    public List<ReplicaStatus> replicas() {
        return replicas.status();
    }

    /**
     * Returns the committed position of a consumer in each partition, ordered by shard and partition; an empty list if it
     * was never started. {@link ConsumerControl#state} has more detail.
     *
     * @throws EventSqlException if a shard is unavailable, or one was added whose database this process was not given
     */
    public List<ConsumerPosition> positions(String stream, String consumer) {
        return consumers.positions(
                requireStream(stream), InvalidInputException.requireGiven("consumer.name", consumer));
    }

    /** Closes this instance with the timeout {@link Settings#closeTimeout()}. */
    @Override
    public void close() {
        close(settings.closeTimeout());
    }

    /**
     * Closes this instance: first its consumers as {@link Subscription#close} does, then the publisher, which rejects
     * further calls and appends the buffered events, then the relay. Events in the outbox are relayed by other processes or
     * after the next start. The data sources stay open. Closing it again has no effect.
     *
     * @param timeout the timeout of all steps together. A fifth of it, at most 5 s, is reserved for the steps after the
     *     handlers have ended; they get at least 1 s.
     * @return {@code false} if the timeout was exceeded, or the caller interrupted, which ends the wait: buffered events may have
     *     failed, or handlers are still running
     */
    public boolean close(Duration timeout) {
        InvalidInputException.requireGiven("timeout", timeout);
        if (!closed.compareAndSet(false, true)) {
            return true;
        }
        ClosingSteps closing = new ClosingSteps(CloseDeadline.after(timeout));
        closing.take(by -> {
            aggregates.stop(by.endNanos());
            return true;
        });
        closing.take(consumers::close);
        closing.take(by -> publisher.close(by.endNanos()));
        closing.take(by -> {
            outbox.close();
            return relays.close(by.endNanos());
        });
        closing.take(by -> {
            consumerStatus.close(by.endNanos());
            replicas.close(by.endNanos());
            wakeUp.close(by.endNanos());
            return true;
        });
        closing.take(by -> {
            shards.close(by.endNanos());
            return true;
        });
        return closing.end();
    }
}
