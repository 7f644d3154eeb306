package io.eventsql.internal.aggregate;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerSpec;
import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSqlException;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.Subscription;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.AggregateTables;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;

/** Starts and drops continuous aggregates. Thread-safe. */
public final class Aggregates {
    private static final String CONSUMER_PREFIX = "aggregate_";
    /** A page is a transaction: large ones, as what they add to a window is one row. */
    private static final int PAGE_EVENTS = 5_000;

    private final Shards shards;
    private final StreamRegistry streams;
    private final Duration closeTimeout;
    private final BiFunction<ConsumerSpec, TransactionalEventBatchHandler, Subscription> subscribe;
    private final BiFunction<String, String, ConsumerControl> control;
    private final Set<AggregateMember> members = ConcurrentHashMap.newKeySet();

    /**
     * @param subscribe starts a transactional consumer with a handler of batches
     * @param control returns the control of a consumer, by stream and name
     */
    public Aggregates(
            Shards shards,
            StreamRegistry streams,
            Duration closeTimeout,
            BiFunction<ConsumerSpec, TransactionalEventBatchHandler, Subscription> subscribe,
            BiFunction<String, String, ConsumerControl> control) {
        this.shards = shards;
        this.streams = streams;
        this.closeTimeout = closeTimeout;
        this.subscribe = subscribe;
        this.control = control;
    }

    private static String consumerName(ContinuousAggregateSpec spec, int generation) {
        return CONSUMER_PREFIX + spec.name() + "_" + generation;
    }

    private Generations generations(ContinuousAggregateSpec spec) {
        return new Generations(
                shards, spec, streams.require(spec.stream()), generation -> consumerName(spec, generation));
    }

    /** See {@link io.eventsql.EventSql#startContinuousAggregate}. */
    public ContinuousAggregate start(ContinuousAggregateSpec spec) {
        AggregateMember member = new AggregateMember(spec, generations(spec), new Generation(spec));
        members.add(member);
        try {
            member.start();
            return member;
        } catch (RuntimeException | Error e) { // the caller has nothing to close it with
            member.close(Duration.ZERO);
            throw e;
        }
    }

    /** See {@link io.eventsql.EventSql#continuousAggregateSql}. */
    public static String script(ContinuousAggregateSpec spec, String role) {
        return new AggregateTables(spec).script(role);
    }

    /** See {@link io.eventsql.EventSql#dropContinuousAggregate}. */
    public void drop(ContinuousAggregateSpec spec) {
        shards.requireAllGiven("Aggregate " + spec.name() + " could not be dropped");
        Generations generations = generations(spec);
        Set<Integer> found = new TreeSet<>();
        for (Shard shard : shards.all()) {
            on(shard, () -> found.addAll(generations.stored(shard)));
        }
        found.forEach(generation ->
                control.apply(spec.stream(), consumerName(spec, generation)).delete());
        for (Shard shard : shards.all()) {
            on(shard, () -> generations.drop(shard));
        }
    }

    /** Statements on one shard. */
    @FunctionalInterface
    private interface Work {
        void run() throws SQLException;
    }

    private static void on(Shard shard, Work work) {
        try {
            work.run();
        } catch (SQLException e) {
            throw new EventSqlException("Dropping an aggregate on " + shard + " failed: " + e.getMessage(), e);
        }
    }

    private final class Generation implements AggregateMember.Consumers {
        private final ContinuousAggregateSpec spec;

        private Generation(ContinuousAggregateSpec spec) {
            this.spec = spec;
        }

        @Override
        public Subscription start(int generation, OutOfRangePolicy outOfRange, PageCounter counter) {
            return subscribe.apply(
                    ConsumerSpec.of(spec.stream(), name(generation))
                            .withPageEvents(PAGE_EVENTS)
                            .withConcurrency(spec.concurrency())
                            .withOutOfRangePolicy(outOfRange),
                    counter);
        }

        @Override
        public String name(int generation) {
            return consumerName(spec, generation);
        }

        @Override
        public void delete(int generation) {
            control.apply(spec.stream(), name(generation)).delete();
        }

        @Override
        public Duration closeTimeout() {
            return closeTimeout;
        }

        @Override
        public void closed(AggregateMember member) {
            members.remove(member);
        }
    }

    /** Ends the threads that start consumers, before all consumers are closed. */
    public void stop(long deadlineNanos) {
        members.forEach(member -> member.stop(deadlineNanos));
    }
}
