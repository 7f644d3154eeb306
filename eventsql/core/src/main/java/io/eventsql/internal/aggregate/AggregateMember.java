package io.eventsql.internal.aggregate;

import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.Subscription;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.AggregateRows;
import io.eventsql.internal.sql.AggregateTables.State;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.thread.Timeouts;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the consumers of the generations that the shards serve or rebuild. A thread compares them with the state on the shards every
 * few seconds, more often during a rebuild: whichever process began it, all members continue it. Thread-safe.
 */
final class AggregateMember implements ContinuousAggregate {
    private static final Logger LOG = LoggerFactory.getLogger(AggregateMember.class);
    private static final long CHECK_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final long REBUILD_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
    /** How long a replaced generation is waited for at first: a page takes less, unless something blocks it. */
    private static final Duration PAGE_TIME_MAX = Duration.ofSeconds(1);

    private final ContinuousAggregateSpec spec;
    private final Generations generations;
    private final AggregateRows rows;
    private final Consumers consumers;
    private final ServiceThread thread;
    /** Of each shard the last known one, also while it is unavailable. */
    private final Map<Shard, State> states = new HashMap<>();

    private final Map<Integer, Subscription> running = new TreeMap<>();
    /** Members of former generations that were closed while they handled a page, and have not ended. */
    private final List<Subscription> ending = new ArrayList<>();
    /** Generations that ran here and have a consumer that may have to be deleted. */
    private final Set<Integer> old = new TreeSet<>();

    private boolean closed;
    /** Used by the thread alone. */
    private final FailureSeries failures = new FailureSeries();

    /** What failed, such as "reading shard0", and why; the next check tries it again. */
    private record Problem(String action, Exception cause) {}

    /** What the aggregate needs of the consumers of this process. */
    interface Consumers {
        /** Starts a member of a generation's consumer. */
        Subscription start(int generation, OutOfRangePolicy outOfRange, PageCounter counter);

        /** Returns the name of a generation's consumer. */
        String name(int generation);

        /** Deletes a generation's consumer on all shards, if it exists. */
        void delete(int generation);

        /** Returns the timeout of {@link ContinuousAggregate#close()}. */
        Duration closeTimeout();

        /** Is called once the member is closed. */
        void closed(AggregateMember member);
    }

    AggregateMember(ContinuousAggregateSpec spec, Generations generations, Consumers consumers) {
        this.spec = spec;
        this.generations = generations;
        this.rows = new AggregateRows(spec);
        this.consumers = consumers;
        this.thread = new ServiceThread("eventsql-aggregate-" + spec.name(), this::check);
    }

    /** Starts what the shards serve, and the thread that keeps it so. */
    void start() {
        List<Problem> problems = reconcile();
        synchronized (this) {
            if (states.isEmpty()) {
                throw new EventSqlException(
                        "Starting aggregate " + spec.name() + " failed: no shard is available",
                        problems.isEmpty() ? null : problems.getLast().cause());
            }
        }
        thread.start();
    }

    private void check() throws InterruptedException {
        List<Problem> problems = reconcile();
        problems.forEach(this::report);
        int ended = problems.isEmpty() ? failures.end() : 0;
        if (ended > 0) {
            LOG.info("Aggregate {} works again after {} failures", spec.name(), ended);
        }
        LockSupport.parkNanos(this, problems.isEmpty() && isAnyRebuilding() ? REBUILD_CHECK_NANOS : CHECK_NANOS);
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    private void report(Problem problem) {
        String reason = SqlErrors.message(problem.cause());
        if (failures.add(problem.action() + ": " + reason).isNew()) {
            LOG.warn(
                    "Aggregate {}: {} failed; checking again every {} s: {}",
                    spec.name(),
                    problem.action(),
                    TimeUnit.NANOSECONDS.toSeconds(CHECK_NANOS),
                    reason);
        } else {
            LOG.debug("Aggregate {}: {} failed again", spec.name(), problem.action(), problem.cause());
        }
    }

    private synchronized boolean isAnyRebuilding() {
        return states.values().stream().anyMatch(state -> state.rebuilding() != null);
    }

    /**
     * Makes what runs here what the shards serve or rebuild.
     *
     * @return what failed
     */
    private synchronized List<Problem> reconcile() {
        if (closed) {
            return List.of();
        }
        ending.removeIf(member -> member.close(Duration.ZERO));
        List<Problem> problems = new ArrayList<>();
        List<Shard> available = new ArrayList<>();
        for (Shard shard : generations.shards()) {
            try {
                states.put(shard, generations.state(shard, newest()));
                available.add(shard);
            } catch (SQLException e) {
                problems.add(new Problem("reading " + shard, e));
            }
        }
        runOnly(states.values().stream().flatMap(State::generations).collect(Collectors.toSet()));
        int newest = newest();
        for (Shard shard : available) {
            try {
                advance(shard, newest);
            } catch (SQLException e) {
                problems.add(new Problem("rebuilding on " + shard, e));
            }
        }
        boolean allServe = states.values().stream().allMatch(state -> state.generation() == newest);
        if (problems.isEmpty() && allServe) {
            problems.addAll(deleteOld(available, newest));
        }
        return problems;
    }

    /** Returns the newest known generation; 0 if none is known. */
    private int newest() {
        return states.values().stream().mapToInt(State::newest).max().orElse(0);
    }

    private void runOnly(Set<Integer> wanted) {
        running.entrySet().removeIf(entry -> {
            boolean ends = !wanted.contains(entry.getKey())
                    || !entry.getValue().isRunning()
                    || entry.getValue().spec().outOfRangePolicy() != outOfRange(entry.getKey());
            if (ends) {
                if (!entry.getValue().close(PAGE_TIME_MAX)) {
                    ending.add(entry.getValue());
                }
                old.add(entry.getKey());
            }
            return ends;
        });
        for (int generation : wanted) {
            if (!running.containsKey(generation)) {
                running.put(generation, start(generation));
            }
        }
        old.removeAll(wanted);
    }

    private void advance(Shard shard, int newest) throws SQLException {
        State state = states.get(shard);
        if (state == null || state.generation() >= newest) {
            return;
        }
        if (state.rebuilding() == null) {
            generations.beginRebuild(shard, newest);
        } else {
            generations.serveIfCaughtUp(shard, state, state.rebuilding());
        }
    }

    private List<Problem> deleteOld(List<Shard> all, int serving) {
        try {
            old.forEach(consumers::delete);
            old.clear();
        } catch (EventSqlException e) {
            return List.of(new Problem("deleting the consumer of a former generation", e));
        }
        List<Problem> problems = new ArrayList<>();
        for (Shard shard : all) {
            try {
                for (int generation : generations.old(shard, serving)) {
                    LOG.info("Aggregate {} was rebuilt; deleting generation {} on {}", spec.name(), generation, shard);
                    consumers.delete(generation); // before its rows: no page is added after them
                    generations.delete(shard, generation);
                }
            } catch (SQLException | EventSqlException e) {
                problems.add(new Problem("deleting a former generation on " + shard, e));
            }
        }
        return problems;
    }

    @Override
    public ContinuousAggregateSpec spec() {
        return spec;
    }

    @Override
    public synchronized String consumerName() {
        int serving = states.values().stream().mapToInt(State::generation).max().orElseThrow();
        return consumers.name(serving);
    }

    /** Reads one shard after the other. */
    @FunctionalInterface
    private interface Reading<T> {
        T read(Shard shard) throws SQLException;
    }

    private <T> List<T> onAll(String action, Reading<T> reading) {
        List<T> results = new ArrayList<>();
        generations.requireAllShards(action + " aggregate " + spec.name() + " failed");
        for (Shard shard : generations.shards()) {
            try {
                results.add(reading.read(shard));
            } catch (SQLException e) {
                throw new EventSqlException(
                        action + " aggregate " + spec.name() + " on " + shard + " failed: " + e.getMessage(), e);
            }
        }
        return results;
    }

    @Override
    public List<Window> windows(Instant from, Instant below, int max) {
        requireRange(from, below, max);
        return UnitedWindows.of(
                onAll("Reading", shard -> shard.require().read(c -> rows.windows(c, from, below, max))), max);
    }

    @Override
    public List<Window> windows(@Nullable String key, Instant from, Instant below, int max) {
        requireRange(from, below, max);
        return UnitedWindows.of(
                onAll("Reading", shard -> shard.require().read(c -> rows.windows(c, key, from, below, max))), max);
    }

    private static void requireRange(@Nullable Instant from, @Nullable Instant below, int max) {
        if (from == null || below == null) {
            throw new InvalidInputException(from == null ? "from" : "below", "must not be null");
        }
        if (max < 1 || max > WINDOWS_MAX) {
            throw new InvalidInputException("max", "must be between 1 and " + WINDOWS_MAX + ", but is " + max);
        }
    }

    @Override
    public List<Coverage> coverage() {
        return onAll("Reading", shard -> shard.require().read(c -> rows.coverage(c, shard.number()))).stream()
                .flatMap(List::stream)
                .toList();
    }

    @Override
    public synchronized void rebuild() {
        List<State> found = onAll("Rebuilding", shard -> generations.state(shard, 0));
        int newest = found.stream().mapToInt(State::newest).max().orElseThrow();
        boolean hasBegun = found.stream().anyMatch(state -> state.generation() < newest);
        int next = hasBegun ? newest : Generations.after(newest);
        if (!closed && !running.containsKey(next)) {
            running.put(next, start(next)); // first: a pool that is too small is the caller's to know
        }
        onAll("Rebuilding", shard -> {
            generations.beginRebuild(shard, next);
            return states.put(shard, generations.state(shard, next));
        });
        thread.unpark();
    }

    private Subscription start(int generation) {
        return consumers.start(generation, outOfRange(generation), new PageCounter(spec, rows, generation));
    }

    /** A rebuild leaves out what retention removes before it is counted; results that all shards serve stay complete. */
    private OutOfRangePolicy outOfRange(int generation) {
        boolean isRebuilt = states.values().stream().anyMatch(state -> state.generation() < generation);
        return isRebuilt ? OutOfRangePolicy.EARLIEST : OutOfRangePolicy.FAIL;
    }

    @Override
    public boolean isRebuilding() {
        List<State> found = onAll("Reading", shard -> generations.state(shard, 0));
        return found.stream().anyMatch(state -> state.rebuilding() != null);
    }

    @Override
    public void close() {
        close(consumers.closeTimeout());
    }

    @Override
    public boolean close(Duration timeout) {
        if (timeout == null) {
            throw new InvalidInputException("timeout", "must not be null");
        }
        long deadline = System.nanoTime() + Timeouts.nanos(timeout);
        boolean ended = stop(deadline);
        List<Subscription> members;
        synchronized (this) {
            closed = true;
            ending.addAll(running.values());
            running.clear();
            members = List.copyOf(ending);
        }
        for (Subscription member : members) {
            if (member.close(Duration.ofNanos(Math.max(0, deadline - System.nanoTime())))) {
                removeEnded(member);
            } else {
                ended = false;
            }
        }
        consumers.closed(this);
        return ended;
    }

    private synchronized void removeEnded(Subscription member) {
        ending.remove(member);
    }

    /** Ends the thread that keeps the consumers running. */
    boolean stop(long deadlineNanos) {
        thread.closeNow();
        try {
            return thread.join(deadlineNanos - System.nanoTime());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
