package io.eventsql.internal.append;

import io.eventsql.BufferState;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSqlException;
import io.eventsql.ExpectedVersion;
import io.eventsql.PartialPublishException;
import io.eventsql.ScheduleId;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.append.Router.Part;
import io.eventsql.internal.append.Router.Routed;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.thread.ServiceThread;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Validates calls, routes their events to shards, and passes each part to the shard's appender. Thread-safe. */
public final class Publisher implements EventPublisher {
    private static final long EXPIRE_EVERY_MS = 20;

    private final StreamRegistry streams;
    private final Router router;
    private final EventValidator validator;
    private final Settings settings;
    private final PublishListeners listeners;
    private final EventScheduler scheduler;
    private final SlotRoutes routes;
    private final List<ShardAppender> appenders = new ArrayList<>();
    /** By the shard's number; {@code null}: this process was not given the shard. */
    private final @Nullable ShardAppender[] ofShard;

    private final ServiceThread timer = new ServiceThread("eventsql-timer", this::expire);

    /**
     * @param preferred the database of the shard that receives events without a key while it is healthy
     * @param scheduleListener is called for each scheduled event
     */
    public Publisher(
            Shards shards, @Nullable DataSource preferred, PublishContext context, ScheduleListener scheduleListener) {
        this.streams = context.streams();
        this.routes = new SlotRoutes(shards);
        this.router = new Router(shards, preferred, routes::current);
        this.validator = new EventValidator(context.settings());
        this.settings = context.settings();
        this.listeners = context.listeners();
        this.scheduler = new EventScheduler(streams, router, validator, settings, scheduleListener);
        this.ofShard = new ShardAppender[shards.size()];
        for (Shard shard : shards.all()) {
            ShardAppender appender = new ShardAppender(
                    shard,
                    context,
                    this::reroute,
                    step -> routes.switchAwayFrom(
                            shard.number(), next -> step.run(call -> moveOn(shard, call, next), next.number())));
            appenders.add(appender);
            ofShard[shard.number()] = appender;
        }
        shards.onSlotsLost(shard -> {
            ShardAppender appender = ofShard[shard.number()];
            if (appender != null) {
                appender.requireRerouting();
            }
        });
        if (!shards.slots().sameOwners(routes.current())) { // they have lost some in the meantime
            appenders.forEach(ShardAppender::requireRerouting);
        }
        timer.start();
    }

    @Override
    public EventPosition publish(String stream, Event event) {
        return await(submit(stream, event, ExpectedVersion.ANY, true));
    }

    @Override
    public EventPosition publish(String stream, Event event, ExpectedVersion expected) {
        return await(submit(stream, event, expected, true));
    }

    @Override
    public List<EventPosition> publishAll(String stream, List<Event> events) {
        return await(submitAll(stream, events, ExpectedVersion.ANY, true));
    }

    @Override
    public List<EventPosition> publishAll(String stream, List<Event> events, ExpectedVersion expected) {
        return await(submitAll(stream, events, expected, true));
    }

    @Override
    public CompletableFuture<EventPosition> publishAsync(String stream, Event event) {
        return submit(stream, event, ExpectedVersion.ANY, false);
    }

    @Override
    public UUID schedule(String stream, Event event, Instant due) {
        UUID id = ScheduleId.next(due);
        scheduler.schedule(stream, event, id, false);
        return id;
    }

    @Override
    public void schedule(String stream, Event event, UUID id) {
        scheduler.schedule(stream, event, EventScheduler.requireId(id), true);
    }

    @Override
    public CompletableFuture<EventPosition> publishAsync(String stream, Event event, ExpectedVersion expected) {
        return submit(stream, event, expected, false);
    }

    private CompletableFuture<EventPosition> submit(
            String stream, Event event, ExpectedVersion expected, boolean callerWaits) {
        long calledAt = System.nanoTime();
        Valid valid = validator.validate(stream, event);
        StreamSpec spec = streams.require(stream);
        List<Valid> events = List.of(valid);
        Long expectedVersion = EventValidator.expectedVersion(spec, events, expected);
        Part part = router.route(spec, valid);
        SingleOutcome outcome = new SingleOutcome(callerWaits, continuations(part));
        put(
                part.shard(),
                new PublishCall(
                                spec,
                                events,
                                part.map(),
                                part.partitions(),
                                callerWaits,
                                calledAt,
                                deadline(calledAt),
                                expectedVersion,
                                listeners.observe(outcome, stream, 1))
                        .routedBy(part.routedBy()));
        return outcome;
    }

    @Override
    public CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<Event> events) {
        return submitAll(stream, events, ExpectedVersion.ANY, false);
    }

    @Override
    public CompletableFuture<List<EventPosition>> publishAllAsync(
            String stream, List<Event> events, ExpectedVersion expected) {
        return submitAll(stream, events, expected, false);
    }

    private CompletableFuture<List<EventPosition>> submitAll(
            String stream, List<Event> events, ExpectedVersion expected, boolean callerWaits) {
        long calledAt = System.nanoTime();
        List<Valid> valid = validator.validateAll(stream, events);
        StreamSpec spec = streams.require(stream);
        Long expectedVersion = EventValidator.expectedVersion(spec, valid, expected);
        if (valid.isEmpty()) {
            return CompletableFuture.completedFuture(List.of());
        }
        List<Part> parts = router.route(spec, valid);
        PublishAllOutcome outcome =
                new PublishAllOutcome(valid.size(), parts.size(), callerWaits, continuations(parts.getFirst()));
        for (Part part : parts) {
            List<Valid> ofPart = parts.size() == 1 ? valid : pick(valid, part.indexes());
            put(
                    part.shard(),
                    new PublishCall(
                                    spec,
                                    ofPart,
                                    part.map(),
                                    part.partitions(),
                                    callerWaits,
                                    calledAt,
                                    deadline(calledAt),
                                    expectedVersion,
                                    listeners.observe(outcome.forPart(part.indexes()), stream, ofPart.size()))
                            .routedBy(part.routedBy()));
        }
        return outcome.future();
    }

    private long deadline(long calledAtNanos) {
        return calledAtNanos + settings.publishTimeout().toNanos();
    }

    /** The application attaches continuations to a future it was given: the append threads must not run them. */
    private Executor continuations(Part part) {
        return appender(part.shard()).continuations();
    }

    private static List<Valid> pick(List<Valid> events, int[] indexes) {
        List<Valid> picked = new ArrayList<>(indexes.length);
        for (int index : indexes) {
            picked.add(events.get(index));
        }
        return picked;
    }

    private ShardAppender appender(Shard shard) {
        return Objects.requireNonNull(ofShard[shard.number()]);
    }

    private void put(Shard shard, PublishCall call) {
        Deque<Routed> waiting = new ArrayDeque<>(List.of(new Routed(shard, call)));
        for (Routed next = waiting.poll(); next != null; next = waiting.poll()) {
            if (!appender(next.shard()).put(next.call())) { // it has closed slots since the call was routed
                Thread.onSpinWait(); // the calls that waited there are moving on
                router.reroute(next.call(), next.shard(), routes.current()).forEach(waiting::add);
            }
        }
    }

    /** Passes a call that has waited for a shard on to those that its events belong to now; returns what stays. */
    private List<PublishCall> moveOn(Shard from, PublishCall call, SlotMap next) {
        List<PublishCall> staying = new ArrayList<>();
        for (Routed routed : router.reroute(call, from, next)) {
            if (routed.shard() == from) {
                staying.add(routed.call());
            } else {
                appender(routed.shard()).accept(routed.call());
            }
        }
        return staying;
    }

    /** Moves calls without keys from an unavailable shard to healthy ones. */
    private void reroute(Shard from, List<PublishCall> calls) {
        List<PublishCall> moved = new ArrayList<>();
        List<PublishCall> staying = new ArrayList<>();
        for (PublishCall call : calls) {
            long routedBy = routes.current().number();
            Shard to = router.chooseShardForEventsWithoutKey(call.stream());
            boolean hasRoom = false;
            if (to != from) {
                call.reroute(to.streams().map(call.stream()));
                hasRoom = appender(to).offer(call.routedBy(routedBy));
            }
            if (!hasRoom) {
                call.reroute(from.streams().map(call.stream()));
            }
            (hasRoom ? moved : staying).add(call);
        }
        appender(from).finishRerouting(moved, staying);
    }

    private void expire() throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep(EXPIRE_EVERY_MS);
        long now = System.nanoTime();
        appenders.forEach(appender -> appender.expire(now));
    }

    /** Returns the state of the buffer of each shard, ordered by number. */
    public List<BufferState> buffers() {
        return appenders.stream().map(ShardAppender::bufferState).toList();
    }

    /** Returns how many callbacks of listeners were dropped, because these were too slow. */
    public long droppedCallbacks() {
        return listeners.dropped();
    }

    /**
     * Rejects further calls and appends the waiting ones until the deadline; then fails the rest.
     *
     * @return whether all calls were appended
     */
    public boolean close(long deadlineNanos) throws InterruptedException {
        scheduler.close();
        appenders.forEach(ShardAppender::stopAccepting);
        boolean all = true;
        for (ShardAppender appender : appenders) {
            all &= appender.close(deadlineNanos);
        }
        timer.closeNow();
        timer.join(deadlineNanos - System.nanoTime());
        listeners.close(deadlineNanos);
        return all;
    }

    private static <T> T await(CompletableFuture<T> future) {
        try {
            return future.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new EventOutcomeUnknownException("The caller was interrupted while the event was being appended", e);
        } catch (ExecutionException e) {
            throw withCallerStackTrace(e.getCause());
        }
    }

    /** Returns the same failure with the caller's stack trace; the library thread's failure becomes its cause. */
    private static EventSqlException withCallerStackTrace(@Nullable Throwable failure) {
        return switch (failure) {
            case EventNotStoredException e -> new EventNotStoredException(String.valueOf(e.getMessage()), e);
            case EventOutcomeUnknownException e -> new EventOutcomeUnknownException(String.valueOf(e.getMessage()), e);
            case VersionConflictException e ->
                new VersionConflictException(e.stream(), e.key(), e.expectedVersion(), e.actualVersion(), e);
            case PartialPublishException e ->
                new PartialPublishException(String.valueOf(e.getMessage()), e.outcomes(), e);
            case null, default -> new EventSqlException("Publishing failed: " + failure, failure);
        };
    }
}
