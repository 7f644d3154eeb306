package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.internal.shard.Shard;

/**
 * One member's way from fetch to commit on one shard: connects its services with each other and with the shard's
 * threads, and ends it.
 */
final class ShardPipeline {
    private final ShardMember member;
    private final Fetcher fetcher;
    private final LeaseKeeper leases;

    private ShardPipeline(ShardMember member, ShardThreads threads) {
        this.member = member;
        this.fetcher = threads.fetchers().of(member.spec());
        this.leases = threads.leases();
    }

    /** Starts consuming: from now on the member takes its share of the shard's partitions. */
    static ShardPipeline start(PipelineContext context, Shard shard, ShardThreads threads, Membership membership) {
        ConsumerSpec spec = membership.spec();
        Listeners listeners = context.listeners();
        CloseSignal closeSignal = context.closeSignal();
        HandlerThreads handlers = context.handlerThreads();
        HeartbeatSchedule heartbeats = threads.heartbeatSchedule();
        FetchSchedule fetches = threads.fetchers().of(spec).schedule();

        ShardMember member = new ShardMember(membership, context.budget(), listeners);
        OffsetCommitter committer = new OffsetCommitter(shard, member, threads.commits(), heartbeats);
        DeadLetters deadLetters =
                new DeadLetters(context.deadLetterStream(), shard, context.segments(), context.wakeUp());
        Failures failures = new Failures(shard, member, committer, deadLetters, listeners, closeSignal);
        HandlerCall call = context.handler().create(shard, committer);
        CircuitReports circuitReports = new CircuitReports(shard, listeners);
        Attempts attempts = new Attempts(spec, call, failures, committer, circuitReports, listeners);
        MissingEvents missing = new MissingEvents(spec.missingEventPolicy(), failures, listeners);
        ErasedEvents erased = new ErasedEvents(committer, listeners);
        HandlingWindow window = new HandlingWindow(spec.maxEventsAhead(), committer, closeSignal, listeners);
        PageHandler pages = spec.keyConcurrency() > 1
                ? new KeyLanes(attempts, failures, missing, erased, window, handlers, heartbeats)
                : new OrderedPageHandler(call.takesBatches(), attempts, failures, missing, erased, window);
        Redrive redrive = new Redrive(shard, attempts, failures, erased);
        Dispatcher dispatcher = new Dispatcher(shard, pages, redrive, failures, handlers, fetches, heartbeats);

        context.budget().add(fetches);
        ShardPipeline pipeline = new ShardPipeline(member, threads);
        pipeline.fetcher.add(member, dispatcher, new OutOfRangeResolver(shard, member, failures, handlers, heartbeats));
        pipeline.leases.add(member, committer, dispatcher);
        return pipeline;
    }

    boolean isClosed() {
        return member.isClosed();
    }

    /** Fetches nothing more and lets the member leave when its handlers have ended. */
    void beginClose() {
        fetcher.remove(member);
        leases.beginLeave(member);
    }

    /** Returns whether the caller is a listener on the thread that renews the leases. */
    boolean isOnLeaseThread() {
        return leases.isCurrentThread();
    }

    /** Waits until the member has left, at most until the deadline; returns whether all its handlers have ended. */
    boolean awaitClosed(CloseDeadline deadline) throws InterruptedException {
        return leases.awaitLeft(member, deadline);
    }

    /** Waits no longer for handlers that are running. */
    void leaveNow() {
        leases.leaveNow(member);
    }
}
