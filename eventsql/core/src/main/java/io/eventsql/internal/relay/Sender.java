package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.append.PartitionGroup;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.RelayTable.Tenure;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.TransferTable.Row;
import io.eventsql.internal.sql.TransferredAppend.Target;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the events of one outbox to one other shard, page by page in the order of their numbers: reads a page of the
 * transfer table, has the shard append what it lacks, then removes the page in a transaction of the relay.
 *
 * <p>What the shard has, only the shard knows: it is asked at the beginning of a tenure and after every failure. Used by
 * one thread at a time.
 */
final class Sender {
    private static final Logger LOG = LoggerFactory.getLogger(Sender.class);

    private final OutboxDatabase outbox;
    private final Shard shard;
    private final StreamRegistry streams;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final PageSize size;

    private @Nullable Tenure tenure;
    /** Up to this number everything was removed. */
    private long removed;
    /** What the shard was asked for or told: the last number of each partition of the streams asked for. */
    private final Map<UUID, Known> known = new HashMap<>();
    /** Events that the shard refuses: why. */
    private final Map<Long, String> refusals = new HashMap<>();

    private final Set<String> missing = new HashSet<>();

    private record Known(Set<Integer> streamIds, Map<Target, Long> lastNumbers) {}

    Sender(
            OutboxDatabase outbox,
            Shard shard,
            StreamRegistry streams,
            SegmentKeeper segments,
            WakeUp wakeUp,
            PageSize size) {
        this.outbox = outbox;
        this.shard = shard;
        this.streams = streams;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.size = size;
    }

    /** The part of a page that the shard lacks. */
    private static final class Part {
        final UUID producer;
        final List<PartitionGroup> groups = new ArrayList<>();
        final List<@Nullable Long> afters = new ArrayList<>();
        final List<Long> numbers = new ArrayList<>();
        int events;

        Part(UUID producer) {
            this.producer = producer;
        }
    }

    /** The shard failed, or did not answer; the outbox's database did nothing wrong. */
    static final class ShardFailedException extends SQLException {
        private static final long serialVersionUID = 1L;

        ShardFailedException(SQLException cause) {
            super(cause.getMessage(), cause.getSQLState(), cause);
        }
    }

    /**
     * Sends one page.
     *
     * @return whether there may be more
     * @throws ShardFailedException if the shard does not take it for the moment
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the tenure has ended
     */
    boolean send(Tenure current) throws SQLException {
        if (!current.equals(tenure)) {
            tenure = current;
            removed = 0;
            known.clear();
        }
        int limit = size.events();
        List<Row> page = ofOneProducer(outbox.database()
                .call(c -> outbox.tables().transfer().page(c, shard.number(), removed, limit, size.bytes())));
        if (page.isEmpty()) {
            return false;
        }
        Part part = null;
        try {
            part = lacking(page);
            if (part.events > 0) {
                append(part);
            }
        } catch (SQLException e) {
            known.clear();
            if (repair(e, page, part)) {
                return true;
            }
            throw new ShardFailedException(e);
        }
        remove(current, page);
        size.grow();
        return true;
    }

    private static List<Row> ofOneProducer(List<Row> page) {
        int end = 0;
        while (end < page.size()
                && page.get(end).producer().equals(page.getFirst().producer())) {
            end++;
        }
        return page.subList(0, end);
    }

    /** What the shard does not have yet, by partition in the lock order. */
    private Part lacking(List<Row> page) throws SQLException {
        Map<String, StreamSpec> specs = learn(page);
        Part part = new Part(page.getFirst().producer());
        Map<Target, Long> lastNumbers = lastNumbers(part.producer, specs.values());
        Map<Target, PartitionGroup> groups = new LinkedHashMap<>();
        Map<Target, Long> numbers = new HashMap<>();
        for (Row event : page) {
            StreamSpec stream = specs.get(event.stream());
            if (stream == null || refusals.containsKey(event.number())) {
                continue;
            }
            Target target = new Target(shard.ensureStream(stream), event.partition());
            Long last = lastNumbers.get(target);
            if (last == null || last < event.number()) {
                groups.computeIfAbsent(target, t -> new PartitionGroup(stream, t.streamId(), t.partition()))
                        .add(event.key(), event.value(), event.headers());
                numbers.put(target, event.number());
                part.events++;
            }
        }
        part.groups.addAll(groups.values());
        part.groups.sort(null);
        for (PartitionGroup group : part.groups) {
            Target target = new Target(group.streamId(), group.partition());
            part.afters.add(lastNumbers.get(target));
            part.numbers.add(numbers.getOrDefault(target, 0L));
        }
        return part;
    }

    /** The streams of a page, without those that do not exist. */
    private Map<String, StreamSpec> learn(List<Row> page) throws SQLException {
        Map<String, StreamSpec> specs = new HashMap<>();
        for (Row event : page) {
            String name = event.stream();
            if (!specs.containsKey(name) && !missing.contains(name)) {
                try {
                    StreamSpec stream = streams.require(name);
                    shard.ensureStream(stream);
                    specs.put(name, stream);
                } catch (UnknownStreamException e) {
                    missing.add(name);
                } catch (EventSqlException e) {
                    throw new SQLTransientConnectionException(e.getMessage(), "08001", e);
                }
            }
        }
        return specs;
    }

    private Map<Target, Long> lastNumbers(UUID producer, Iterable<StreamSpec> specs) throws SQLException {
        Known ofProducer = known.computeIfAbsent(producer, p -> new Known(new HashSet<>(), new HashMap<>()));
        Set<Integer> unasked = new HashSet<>();
        for (StreamSpec stream : specs) {
            unasked.add(shard.ensureStream(stream));
        }
        unasked.removeAll(ofProducer.streamIds());
        if (!unasked.isEmpty()) {
            int[] streamIds = unasked.stream().mapToInt(Integer::intValue).toArray();
            ofProducer
                    .lastNumbers()
                    .putAll(shard.require()
                            .call(c -> shard.tables().outbox().append().registerOutbox(c, producer, streamIds)));
            ofProducer.streamIds().addAll(unasked);
        }
        return ofProducer.lastNumbers();
    }

    private void append(Part part) throws SQLException {
        long[] bases = shard.require()
                .call(c -> shard.tables()
                        .outbox()
                        .append()
                        .execute(
                                c,
                                part.producer,
                                shard.mapVersion(),
                                PartitionGroup.rows(part.groups),
                                part.afters,
                                part.numbers));
        Map<Target, Long> lastNumbers = lastNumbers(part.producer, List.of());
        for (int i = 0; i < bases.length; i++) {
            PartitionGroup group = part.groups.get(i);
            lastNumbers.put(new Target(group.streamId(), group.partition()), part.numbers.get(i));
            segments.appended(shard, group.stream(), group.partition(), bases[i] + group.size());
            wakeUp.appended(shard, group.streamId(), group.partition());
        }
    }

    /** The shard has the page, or it never can have it. */
    private void remove(Tenure current, List<Row> page) throws SQLException {
        long last = page.getLast().number();
        List<String> errors = new ArrayList<>();
        outbox.database().transaction(connection -> {
            outbox.tables().relay().lock(connection, current);
            for (Row event : page) {
                String error = missing.contains(event.stream())
                        ? "there is no stream " + event.stream()
                        : refusals.get(event.number());
                if (error != null) {
                    errors.add(error);
                    refuse(connection, event, error);
                }
            }
            outbox.tables().transfer().delete(connection, shard.number(), removed, last);
            return last;
        });
        if (!errors.isEmpty()) {
            LOG.error(
                    "{} events of outbox {} can never be appended to {} and are kept in its table outbox_refused; the first: {}",
                    errors.size(),
                    outbox,
                    shard,
                    errors.getFirst());
        }
        removed = last;
        refusals.clear();
        missing.clear();
    }

    private void refuse(Connection connection, Row event, String error) throws SQLException {
        outbox.tables()
                .refused()
                .insert(
                        connection,
                        event.stream(),
                        event.key(),
                        event.value(),
                        event.headers(),
                        event.writtenAt(),
                        error);
    }

    /** Removes the reason why the shard stored nothing, if it can; then the page is sent again at once. */
    private boolean repair(SQLException e, List<Row> page, @Nullable Part part) throws SQLException {
        if (part == null) {
            return false;
        }
        String state = SqlErrors.state(e);
        if (state.equals(SqlErrors.NOT_NEXT)) {
            return true; // something late has arrived: ask again what is there
        }
        if (state.equals(SqlErrors.NOT_READ_COMMITTED)) {
            shard.require().requireReadCommitted();
            return true;
        }
        if (SqlErrors.isMissingSegment(e)) {
            boolean created = false;
            for (PartitionGroup group : part.groups) {
                created |= segments.ensureRoom(shard, group.stream(), group.streamId(), group.partition());
            }
            return created;
        }
        if (state.equals(SqlErrors.NO_PARTITION) || state.equals(SqlErrors.UNDEFINED_TABLE)) {
            boolean changed = false;
            for (PartitionGroup group : part.groups) {
                shard.forgetStream(group.stream().name());
                if (shard.findStream(group.stream().name()).isEmpty()) {
                    changed |= missing.add(group.stream().name());
                }
            }
            return changed;
        }
        if (!SqlErrors.isRefusedContent(e)) {
            return false;
        }
        if (page.size() > 1) {
            size.halve(page.size());
        } else {
            refusals.put(page.getFirst().number(), SqlErrors.message(e));
        }
        return true;
    }
}
