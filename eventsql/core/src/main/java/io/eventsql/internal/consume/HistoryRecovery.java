package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.ReadFrom;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.internal.consume.PartitionPages.LastTaken;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Tables;
import io.eventsql.internal.sql.ConsumerTable.Offset;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.FetchStatement;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets members continue after the database of their shard has got another incarnation. Registers the consumer again,
 * because its id may be another one. Where the history contains everything that was passed to the handler, what is handled
 * is committed before the partition is released and taken anew; elsewhere the assignment ends at once, because epochs and
 * offsets of a lost history fence nothing, and what was lost is reported. Used by the lease keeper's thread alone.
 */
final class HistoryRecovery {
    private static final Logger LOG = LoggerFactory.getLogger(HistoryRecovery.class);

    private final Shard shard;
    private final Duration answerTimeout;

    HistoryRecovery(Shard shard, Duration answerTimeout) {
        this.shard = shard;
        this.answerTimeout = answerTimeout;
    }

    /** Returns whether the ids that the member has are those of the database's incarnation. */
    boolean isCurrent(ShardMember member) throws SQLException {
        return member.membership().incarnation().equals(shard.incarnation());
    }

    /**
     * Lets the member continue in the database's incarnation, unless it is closed. Until then it handles no further event.
     *
     * @return whether it continues
     * @throws SQLException if the database is unavailable, or has changed again, or lacks the stream while another shard has one of
     *     that name with other partitions; repeat the call
     */
    boolean recover(ShardMember member) throws SQLException {
        List<Assignment> owned = member.assignments();
        owned.forEach(Assignment::drain);
        if (member.isClosed()) {
            owned.forEach(assignment -> member.remove(assignment, Reason.HISTORY_CHANGED));
            return false;
        }
        Membership former = member.membership();
        String incarnation = shard.incarnation(); // before the ids
        StreamTable.Row stream = shard.streams().readOrCreate(former.stream());
        Stored stored;
        Map<Integer, Instant> times;
        try {
            // Before the times: in between, an event may be appended where the last one handled was lost.
            List<Head> heads = readHeads(incarnation, stream);
            times = areReadAlike(former.stream(), stream.spec()) ? readTimes(owned, incarnation, stream) : Map.of();
            if (hasConsumerInHistory(owned, times) && !exists(former, stream)) {
                endDeleted(member, owned);
                return false;
            }
            stored = read(former, incarnation, stream, heads);
        } catch (SQLException e) {
            shard.recheckAfter(e, incarnation);
            throw e;
        }
        Membership current = former.in(incarnation, stored.consumerId(), stream);
        member.replaceMembership(current);
        if (stored.isNew()) {
            LOG.error(
                    "Consumer {} of stream {} no longer existed on {}, which was restored to a time before it; registered it"
                            + " again, at {}",
                    former.spec().name(),
                    former.spec().stream(),
                    shard,
                    former.spec().startPosition());
        }
        for (Assignment assignment : owned) {
            continueOrEnd(member, assignment, current, stored, times.get(assignment.partition()));
        }
        return true;
    }

    /** Returns whether an event is read from both in the same way. Their other settings can be altered at any time. */
    private static boolean areReadAlike(StreamSpec former, StreamSpec stored) {
        return former.partitions() == stored.partitions() && former.storage() == stored.storage();
    }

    /** Returns whether the history contains an event that was appended while the consumer was registered. */
    private static boolean hasConsumerInHistory(List<Assignment> owned, Map<Integer, Instant> times) {
        return owned.stream()
                .anyMatch(assignment -> assignment.isLastTakenNew()
                        && assignment.spec().readFrom() == ReadFrom.PRIMARY // the head of a replica may be an older one
                        && isStored(assignment.lastTaken(), times.get(assignment.partition())));
    }

    private static boolean isStored(@Nullable LastTaken last, @Nullable Instant storedAt) {
        return last != null && last.publishedAt().equals(storedAt);
    }

    private boolean exists(Membership former, StreamTable.Row stream) throws SQLException {
        return database()
                .call(c -> shard.tables()
                        .consumers()
                        .id(c, stream.id(), former.spec().name())
                        .isPresent());
    }

    /** Ends a member whose consumer is not lost, but was deleted. */
    private void endDeleted(ShardMember member, List<Assignment> owned) {
        LOG.warn(
                "Consumer {} of stream {} was deleted on {}; ending its member",
                member.spec().name(),
                member.spec().stream(),
                shard);
        member.close();
        owned.forEach(assignment -> member.remove(assignment, Reason.LOST));
    }

    /** What the database has stored for the consumer. */
    private record Stored(
            boolean isNew, int consumerId, Map<Integer, Long> consumedEvents, List<Offset> offsets, List<Head> heads) {
        Optional<Offset> offset(int partition) {
            return offsets.stream().filter(o -> o.partition() == partition).findFirst();
        }

        long head(int partition) {
            return heads.stream()
                    .filter(h -> h.partition() == partition)
                    .mapToLong(Head::head)
                    .findFirst()
                    .orElse(0);
        }
    }

    private Database database() throws SQLException {
        return shard.require().withNetworkTimeout(answerTimeout);
    }

    private List<Head> readHeads(String incarnation, StreamTable.Row stream) throws SQLException {
        return database().call(c -> shard.tables().partitions().heads(c, incarnation, new int[] {stream.id()}));
    }

    private Stored read(Membership former, String incarnation, StreamTable.Row stream, List<Head> heads)
            throws SQLException {
        return database().transaction(c -> {
            Tables tables = shard.tables();
            ConsumerSpec spec = former.spec();
            boolean isNew = tables.consumers().id(c, stream.id(), spec.name()).isEmpty();
            int id = tables.consumers().register(c, stream.id(), spec.stream(), spec.name(), spec.startPosition());
            return new Stored(
                    isNew,
                    id,
                    tables.offsets().consumedEvents(c, id), // before the offsets, which may advance in between
                    tables.consumers().offsets(c, incarnation, id),
                    heads);
        });
    }

    /** Returns by partition when the event was published that is stored where the handler got its last one. */
    private Map<Integer, Instant> readTimes(List<Assignment> owned, String incarnation, StreamTable.Row stream)
            throws SQLException {
        List<Request> requests = new ArrayList<>();
        for (Assignment assignment : owned) {
            LastTaken last = assignment.lastTaken();
            if (last != null) {
                requests.add(new Request(assignment.partition(), last.offset(), 1));
            }
        }
        Map<Integer, Instant> times = new HashMap<>();
        if (requests.isEmpty()) {
            return times;
        }
        List<FetchedPage> pages;
        try {
            pages = database()
                    .call(c -> shard.tables()
                            .fetch()
                            .execute(c, incarnation, stream.id(), stream.spec(), shard.number(), requests, 1));
        } catch (SQLException e) {
            if (!FetchStatement.isCausedByRow(e)) {
                throw e;
            }
            LOG.debug("The last handled events on {} cannot be read; events may be handled again", shard, e);
            return times;
        }
        for (int i = 0; i < requests.size(); i++) {
            Request request = requests.get(i);
            List<StoredEvent> events = pages.get(i).events();
            if (!events.isEmpty() && events.getFirst().offset() == request.fromOffset()) {
                times.put(request.partition(), events.getFirst().publishedAt());
            }
        }
        return times;
    }

    private static void continueOrEnd(
            ShardMember member,
            Assignment assignment,
            Membership current,
            Stored stored,
            @Nullable Instant lastTakenAt) {
        @Nullable LastTaken last = assignment.lastTaken();
        boolean isStored = isStored(last, lastTakenAt);
        boolean isReplaced = last != null && lastTakenAt != null && !isStored;
        Optional<Offset> offset = stored.offset(assignment.partition());
        if (isStored && offset.isPresent() && isSame(assignment, offset.get())) {
            assignment.recordCommitted(offset.get().nextOffset());
            // One that is being stopped, too: storing the stop commits what was handled before.
            if (!assignment.hasEnded() && (assignment.isHandling() || assignment.uncommitted() != null)) {
                assignment.continueAs(current);
                return;
            }
        }
        member.remove(assignment, Reason.HISTORY_CHANGED);
        reportLoss(member, assignment, stored, isReplaced);
    }

    /** Returns whether a stored offset is the one that the member had committed, or was about to commit, in its epoch. */
    private static boolean isSame(Assignment assignment, Offset stored) {
        return stored.epoch() == assignment.epoch()
                && stored.nextOffset() >= assignment.committedOffset()
                && stored.nextOffset() <= assignment.progress().toOffset();
    }

    /**
     * Reports what was lost, if anything: a range that begins at the stored offset, because what is committed is stored.
     *
     * @param isReplaced whether another event is stored where the handler got its last one
     */
    private static void reportLoss(ShardMember member, Assignment assignment, Stored stored, boolean isReplaced) {
        int partition = assignment.partition();
        long committed = assignment.committedOffset();
        long fetched = assignment.fetchedOffset();
        long next = stored.offset(partition).map(Offset::nextOffset).orElse(committed);
        if (isReplaced || stored.head(partition) < fetched) {
            member.reportLost(assignment, next, Math.max(committed, fetched));
        } else if (!isMovedBack(assignment, stored)) {
            member.reportLost(assignment, next, committed);
        }
    }

    /**
     * Returns whether a lower offset is that of a seek. A seek raises the epoch and keeps the number of consumed events. A
     * history without the member's commit may have raised the epoch, too, but has counted fewer events up to a lower offset.
     */
    private static boolean isMovedBack(Assignment assignment, Stored stored) {
        int partition = assignment.partition();
        return stored.offset(partition).map(Offset::epoch).orElse(0L) > assignment.epoch()
                && stored.consumedEvents().getOrDefault(partition, 0L) >= assignment.consumedEvents();
    }
}
