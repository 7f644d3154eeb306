package io.eventsql.internal.aggregate;

import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.AggregateTables;
import io.eventsql.internal.sql.AggregateTables.State;
import io.eventsql.internal.sql.ConsumerTable;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** The tables and generations of one aggregate on its shards. Thread-safe. */
final class Generations {
    /** How far the new generation may be behind the old one when that begins to wait for it. */
    private static final long WAIT_LAG_EVENTS = 50_000;
    /** How long pages of the old generation wait for the new one; their transactions tolerate a lock for longer. */
    private static final long WAIT_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final Instant FIRST_GENERATION = Instant.parse("2020-01-01T00:00:00Z");
    private static final long WAIT_POLL_MS = 2;
    private static final int DELETE_ROWS = 10_000;

    private final Shards shards;
    private final ContinuousAggregateSpec spec;
    private final StreamSpec stream;
    private final AggregateTables tables;
    private final IntFunction<String> consumerNames;
    private final Set<Shard> prepared = ConcurrentHashMap.newKeySet();
    /** Of each shard, how far the new generation was when the old one had waited for it without success. */
    private final Map<Shard, Lag> lagAfterWait = new ConcurrentHashMap<>();

    /**
     * How far the new generation is behind the old one.
     *
     * @param events in all partitions
     * @param offsets its offsets in the partitions in which it is behind
     */
    private record Lag(long events, Map<Integer, Long> offsets) {
        private static final Lag NONE = new Lag(0, Map.of());

        /** Returns whether there is a partition in which it has handled nothing since. */
        boolean isStuckSince(Lag earlier) {
            return !Collections.disjoint(offsets.entrySet(), earlier.offsets.entrySet());
        }
    }

    /** @param consumerNames returns the name of a generation's consumer */
    Generations(Shards shards, ContinuousAggregateSpec spec, StreamSpec stream, IntFunction<String> consumerNames) {
        this.shards = shards;
        this.spec = spec;
        this.stream = stream;
        this.tables = new AggregateTables(spec);
        this.consumerNames = consumerNames;
    }

    /**
     * Returns the state on a shard. Tables that do not exist are created, and begin with a generation.
     *
     * @param newest that of the other shards; 0 if none is known
     * @throws InvalidInputException if the tables were created for another declaration
     * @throws EventSqlException if the role may not create or write them
     */
    State state(Shard shard, int newest) throws SQLException {
        Optional<State> found;
        try {
            found = shard.require().read(tables::state);
        } catch (MissingPrivilegeException e) {
            throw missingRights(shard, "may not read", e);
        }
        State state = found.isPresent() ? found.get() : begin(shard, newest);
        if (!state.declaration().equals(spec.declaration())) {
            throw new InvalidInputException(
                    "aggregate",
                    spec.name() + " is declared as: " + spec.declaration() + ", but its tables on " + shard
                            + " were created for: " + state.declaration()
                            + ". Give the changed aggregate another name, or call dropContinuousAggregate first");
        }
        if (!prepared.contains(shard)) {
            if (!shard.require().read(tables::mayWrite)) {
                throw missingRights(shard, "may not write", null);
            }
            if (identifyPartials(shard)) {
                prepared.add(shard);
            }
        }
        return state;
    }

    /** Returns whether it need not be repeated. */
    private boolean identifyPartials(Shard shard) throws SQLException {
        try {
            shard.require().transaction(connection -> {
                tables.identifyPartials(connection);
                return spec;
            });
            return true;
        } catch (SQLException e) {
            if (!SqlErrors.isLockConflict(e)) {
                throw e;
            }
            return false;
        }
    }

    /**
     * Returns a generation later than all others. Its number, and so the name of its consumer, was never used before, also if the
     * tables were dropped since.
     */
    static int after(int newest) {
        long seconds = ChronoUnit.SECONDS.between(FIRST_GENERATION, Instant.now());
        return Math.max(newest + 1, Math.toIntExact(seconds));
    }

    private State begin(Shard shard, int newest) throws SQLException {
        prepared.remove(shard);
        create(shard);
        if (!shard.require().read(tables::mayWrite)) {
            throw missingRights(shard, "may not write", null);
        }
        shard.require().transaction(connection -> {
            tables.insertState(connection, newest > 0 ? newest : after(0));
            return spec;
        });
        return shard.require()
                .read(tables::state)
                .orElseThrow(() -> new SQLException("the tables of aggregate " + spec.name() + " were dropped"));
    }

    private void create(Shard shard) throws SQLException {
        try {
            shard.require().transaction(connection -> {
                tables.create(connection);
                return spec;
            });
        } catch (MissingPrivilegeException e) {
            throw missingRights(shard, "may not create", e);
        }
    }

    private EventSqlException missingRights(Shard shard, String what, @Nullable SQLException cause)
            throws SQLException {
        String role =
                shard.require().read(connection -> connection.getMetaData().getUserName());
        String message = "Role " + role + " " + what + " the tables of aggregate " + spec.name() + " on " + shard
                + ". Let an administrator run what is missing of this script there:\n" + tables.script(role);
        return new EventSqlException(message, cause);
    }

    /** Begins to rebuild a generation on a shard, unless it has begun there. */
    void beginRebuild(Shard shard, int generation) throws SQLException {
        shard.require().transaction(connection -> {
            tables.beginRebuild(connection, generation);
            return generation;
        });
    }

    /** Lets a shard serve the generation that is being rebuilt if it contains what the old one does. */
    void serveIfCaughtUp(Shard shard, State state, int generation) throws SQLException {
        OptionalInt streamId = shard.streams().readId(stream);
        if (streamId.isEmpty()) {
            return;
        }
        int id = streamId.getAsInt();
        Lag before = shard.require().read(c -> lag(c, shard, id, state.generation(), generation));
        if (before.events() > WAIT_LAG_EVENTS || before.isStuckSince(lagAfterWait.getOrDefault(shard, Lag.NONE))) {
            return;
        }
        // Two generations under load are hardly ever at the same offsets by themselves: the old one waits.
        shard.require().transactionIf(connection -> {
            tables.lockCoverage(connection, state.generation());
            long deadline = System.nanoTime() + WAIT_NANOS;
            Lag lag = lag(connection, shard, id, state.generation(), generation);
            while (lag.events() > 0) {
                if (System.nanoTime() > deadline) {
                    lagAfterWait.put(shard, lag);
                    return false;
                }
                try {
                    TimeUnit.MILLISECONDS.sleep(WAIT_POLL_MS);
                } catch (InterruptedException e) { // closing
                    Thread.currentThread().interrupt();
                    return false;
                }
                lag = lag(connection, shard, id, state.generation(), generation);
            }
            tables.serve(connection, generation);
            return true;
        });
    }

    /** Returns how far the new generation is behind the old one, or behind the heads if that has no consumer. */
    private Lag lag(Connection connection, Shard shard, int streamId, int old, int generation) throws SQLException {
        Map<Integer, Long> target = offsets(connection, shard, streamId, old);
        if (target.isEmpty()) {
            shard.tables()
                    .partitions()
                    .heads(connection, null, new int[] {streamId})
                    .forEach(head -> target.put(head.partition(), head.head()));
        }
        Map<Integer, Long> reached = offsets(connection, shard, streamId, generation);
        long events = 0;
        Map<Integer, Long> behind = new HashMap<>();
        for (Map.Entry<Integer, Long> partition : target.entrySet()) {
            Long offset = reached.get(partition.getKey());
            if (offset == null) {
                return new Lag(Long.MAX_VALUE, Map.of()); // its consumer has not begun
            }
            if (offset < partition.getValue()) {
                events += partition.getValue() - offset;
                behind.put(partition.getKey(), offset);
            }
        }
        return new Lag(events, behind);
    }

    private Map<Integer, Long> offsets(Connection connection, Shard shard, int streamId, int generation) {
        ConsumerTable consumers = shard.tables().consumers();
        Map<Integer, Long> offsets = new HashMap<>();
        OptionalInt consumer = consumers.id(connection, streamId, consumerNames.apply(generation));
        if (consumer.isPresent()) {
            consumers
                    .offsets(connection, null, consumer.getAsInt())
                    .forEach(offset -> offsets.put(offset.partition(), offset.nextOffset()));
        }
        return offsets;
    }

    /** Returns the generations before the given one that a shard has rows of. */
    List<Integer> old(Shard shard, int generation) throws SQLException {
        return shard.require().read(connection -> tables.oldGenerations(connection, generation));
    }

    /** Deletes the rows of a generation that has no consumer any more, in short transactions. */
    void delete(Shard shard, int generation) throws SQLException {
        int deleted;
        do {
            deleted = shard.require().transaction(c -> tables.deletePartials(c, generation, DELETE_ROWS));
        } while (deleted == DELETE_ROWS && !Thread.currentThread().isInterrupted());
        if (deleted < DELETE_ROWS) {
            shard.require().transaction(connection -> {
                tables.deleteCoverage(connection, generation);
                return generation;
            });
        }
    }

    /** Returns all generations that a shard has; none if it has no tables. */
    Set<Integer> stored(Shard shard) throws SQLException {
        return shard.require().read(connection -> {
            Set<Integer> stored = new TreeSet<>();
            Optional<State> state = tables.state(connection);
            if (state.isPresent()) {
                state.get().generations().forEach(stored::add);
                stored.addAll(tables.oldGenerations(connection, state.get().generation()));
            }
            return stored;
        });
    }

    /** Drops view and tables of a shard. */
    void drop(Shard shard) throws SQLException {
        shard.require().transaction(connection -> {
            tables.drop(connection);
            return spec;
        });
    }

    /** Returns the shards, by number. */
    List<Shard> shards() {
        return shards.all();
    }

    /** See {@link Shards#requireAllGiven}. */
    void requireAllShards(String failure) {
        shards.requireAllGiven(failure);
    }
}
