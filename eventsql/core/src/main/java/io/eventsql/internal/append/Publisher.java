package io.eventsql.internal.append;

import io.eventsql.BufferState;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSqlException;
import io.eventsql.PartialPublishException;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.append.Router.Part;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.wake.WakeUp;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
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
    private final List<ShardAppender> appenders = new ArrayList<>();
    private final ScheduledFuture<?> deadlines;

    /**
     * @param producer identifies this instance; scope of the batch numbers
     * @param preferred the database of the shard that receives events without a key while it is healthy
     * @param timer checks the deadlines
     */
    public Publisher(
            UUID producer,
            Shards shards,
            StreamRegistry streams,
            @Nullable DataSource preferred,
            Settings settings,
            SegmentKeeper segments,
            WakeUp wakeUp,
            ScheduledExecutorService timer,
            PublishListeners listeners) {
        this.streams = streams;
        this.router = new Router(shards, preferred);
        this.validator = new EventValidator(settings);
        this.settings = settings;
        this.listeners = listeners;
        for (Shard shard : shards.all()) {
            appenders.add(new ShardAppender(shard, producer, settings, segments, wakeUp, this::reroute, listeners));
        }
        deadlines = timer.scheduleWithFixedDelay(this::expire, EXPIRE_EVERY_MS, EXPIRE_EVERY_MS, TimeUnit.MILLISECONDS);
    }

    @Override
    public EventPosition publish(String stream, Event event) {
        return await(publishAsync(stream, event));
    }

    @Override
    public List<EventPosition> publishAll(String stream, List<Event> events) {
        return await(publishAllAsync(stream, events));
    }

    @Override
    public CompletableFuture<EventPosition> publishAsync(String stream, Event event) {
        long deadline = System.nanoTime() + settings.publishTimeout().toNanos();
        Valid valid = validator.validate(stream, event);
        StreamSpec spec = streams.require(stream);
        Part part = router.route(spec, valid);
        SingleOutcome outcome = new SingleOutcome();
        put(
                part.shard(),
                new PublishCall(
                        spec, List.of(valid), part.partitions(), deadline, listeners.observe(outcome, stream, 1)));
        return outcome.future;
    }

    @Override
    public CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<Event> events) {
        long deadline = System.nanoTime() + settings.publishTimeout().toNanos();
        List<Valid> valid = validator.validateAll(stream, events);
        StreamSpec spec = streams.require(stream);
        if (valid.isEmpty()) {
            return CompletableFuture.completedFuture(List.of());
        }
        List<Part> parts = router.route(spec, valid);
        PublishAllOutcome outcome = new PublishAllOutcome(valid.size(), parts.size());
        for (Part part : parts) {
            List<Valid> ofPart = parts.size() == 1 ? valid : pick(valid, part.indexes());
            put(
                    part.shard(),
                    new PublishCall(
                            spec,
                            ofPart,
                            part.partitions(),
                            deadline,
                            listeners.observe(outcome.forPart(part.indexes()), stream, ofPart.size())));
        }
        return outcome.future();
    }

    private static List<Valid> pick(List<Valid> events, int[] indexes) {
        List<Valid> picked = new ArrayList<>(indexes.length);
        for (int index : indexes) {
            picked.add(events.get(index));
        }
        return picked;
    }

    private void put(Shard shard, PublishCall call) {
        appenders.get(shard.number()).put(call);
    }

    /** Moves calls without keys from an unavailable shard to healthy ones. */
    private void reroute(Shard from, List<PublishCall> calls) {
        List<PublishCall> moved = new ArrayList<>();
        List<PublishCall> staying = new ArrayList<>();
        for (PublishCall call : calls) {
            Shard to = router.chooseShardForEventsWithoutKey();
            boolean hasRoom = to != from && appenders.get(to.number()).offer(call);
            (hasRoom ? moved : staying).add(call);
        }
        appenders.get(from.number()).finishRerouting(moved, staying);
    }

    private void expire() {
        long now = System.nanoTime();
        appenders.forEach(appender -> appender.expire(now));
    }

    /** Returns the state of the buffer of each shard, ordered by number. */
    public List<BufferState> buffers() {
        return appenders.stream().map(ShardAppender::bufferState).toList();
    }

    /**
     * Rejects further calls and appends the waiting ones until the deadline; then fails the rest.
     *
     * @return whether all calls were appended
     */
    public boolean close(long deadlineNanos) throws InterruptedException {
        appenders.forEach(ShardAppender::stopAccepting);
        boolean all = true;
        for (ShardAppender appender : appenders) {
            all &= appender.close(deadlineNanos);
        }
        deadlines.cancel(false);
        return all;
    }

    private static final class SingleOutcome implements PublishCall.Outcome {
        private final CompletableFuture<EventPosition> future = new CompletableFuture<>();

        @Override
        public void stored(EventPosition[] positions) {
            future.complete(positions[0]);
        }

        @Override
        public void failed(EventSqlException failure) {
            future.completeExceptionally(failure);
        }
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
            case PartialPublishException e ->
                new PartialPublishException(String.valueOf(e.getMessage()), e.outcomes(), e);
            case null, default -> new EventSqlException("Publishing failed: " + failure, failure);
        };
    }
}
