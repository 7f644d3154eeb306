package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.consume.KeyQueues.Lane;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.HeadersJson;
import io.eventsql.internal.sql.OffsetRange;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Handles the keys of a partition in parallel: a lane for each key that has events, in which they keep their order;
 * events without a key have a lane each. The partition's offset advances only past what is handled; after a crash events
 * that were handled beyond it are handled again. Thread-safe.
 */
final class KeyLanes implements PageHandler {
    private static final Logger LOG = LoggerFactory.getLogger(KeyLanes.class);

    private final Attempts attempts;
    private final Failures failures;
    private final MissingEvents missing;
    private final ErasedEvents erased;
    private final HandlingWindow window;
    private final HandlerThreads threads;
    private final HeartbeatSchedule heartbeats;

    KeyLanes(
            Attempts attempts,
            Failures failures,
            MissingEvents missing,
            ErasedEvents erased,
            HandlingWindow window,
            HandlerThreads threads,
            HeartbeatSchedule heartbeats) {
        this.attempts = attempts;
        this.failures = failures;
        this.missing = missing;
        this.erased = erased;
        this.window = window;
        this.threads = threads;
        this.heartbeats = heartbeats;
    }

    /** Puts a page into the lanes; returns when these have room for another one. Lanes have turns of their own. */
    @Override
    public void handle(Assignment assignment, FetchedPage page, HandlerTurn turn) {
        long notAdded = 0;
        for (StoredEvent event : page.events()) {
            notAdded += bytes(event);
        }
        assignment.exchangeBytes(page.bytes(), notAdded); // each event releases its own
        missing.passCompacted(assignment, page);
        long expected = page.firstOffset();
        long windowEnd = window.end(assignment);
        try {
            for (StoredEvent event : page.events()) {
                long offset = event.offset();
                boolean mayContinue = offset == expected || passMissing(assignment, page, expected, offset, turn);
                if (mayContinue && offset >= windowEnd) {
                    mayContinue = turn.withoutPermit(() -> window.await(assignment, offset));
                    windowEnd = window.end(assignment);
                }
                if (!mayContinue) {
                    assignment.drain(); // no later event may be handled before those that are left
                    return;
                }
                if (event.isErased()) { // its bytes are released with the rest of the page
                    erased.pass(assignment, List.of(event));
                    expected = offset + 1;
                    continue;
                }
                notAdded -= bytes(event);
                Lane lane = assignment.keyQueues().add(event);
                if (lane != null) {
                    start(assignment, lane);
                }
                expected = offset + 1;
            }
            if (expected < page.nextOffset() && !passMissing(assignment, page, expected, page.nextOffset(), turn)) {
                assignment.drain();
            }
        } finally {
            assignment.releaseBytes(notAdded);
        }
        turn.withoutPermit(
                () -> assignment.keyQueues().awaitAtMost(assignment.spec().pageEvents()));
    }

    private boolean passMissing(Assignment assignment, FetchedPage page, long first, long next, HandlerTurn turn) {
        for (OffsetRange range : page.compacted().outside(first, next)) {
            if (!passMissing(assignment, range.first(), range.next(), turn)) {
                return false;
            }
        }
        return true;
    }

    private boolean passMissing(Assignment assignment, long first, long next, HandlerTurn turn) {
        if (missing.stops()) {
            awaitIdle(assignment, turn); // the partition stops after everything before
        }
        return turn.withoutPermit(() ->
                !assignment.isEnding() && window.await(assignment, first) && missing.pass(assignment, first, next));
    }

    /** Returns the memory that an event takes in its lane. */
    private static long bytes(StoredEvent event) {
        String key = event.key();
        long characters = (key == null ? 0 : key.length()) + HeadersJson.characters(event.headers());
        return event.value().length + characters * FetchedPage.CHARACTER_BYTES;
    }

    @Override
    public void awaitIdle(Assignment assignment, HandlerTurn turn) {
        turn.withoutPermit(() -> assignment.keyQueues().awaitAtMost(0));
    }

    private void start(Assignment assignment, Lane lane) {
        try {
            threads.execute(() -> run(assignment, lane));
        } catch (Throwable e) { // the member is closed, or there is no memory for a thread
            if (!assignment.isEnding()) {
                LOG.error("No thread could be started for a key of {}; handling it one by one", assignment.name(), e);
            }
            run(assignment, lane); // if the partition is ending, this only counts the events as finished
        }
    }

    private void run(Assignment assignment, Lane lane) {
        KeyQueues queues = assignment.keyQueues();
        try {
            handleAll(assignment, lane, queues);
        } catch (Throwable e) { // the partition must not keep its lease without a thread that handles this lane
            failures.abort(assignment, e);
            for (StoredEvent event = queues.poll(lane); event != null; event = queues.poll(lane)) {
                assignment.leaveLaneEvent(event.offset());
                finish(assignment, event);
            }
        }
    }

    private void handleAll(Assignment assignment, Lane lane, KeyQueues queues) {
        HandlerTurn turn = HandlerTurn.ofLane(assignment, queues.permits());
        assignment.calls().add(turn.clock());
        for (StoredEvent event = queues.poll(lane); event != null; event = queues.poll(lane)) {
            turn.begin();
            try {
                handle(assignment, event, turn);
            } catch (Throwable e) { // an error of the library, not of the handler
                turn.end();
                failures.abort(assignment, e);
                assignment.leaveLaneEvent(event.offset());
            } finally {
                turn.end();
                finish(assignment, event);
            }
        }
        assignment.calls().remove(turn.clock());
    }

    private void handle(Assignment assignment, StoredEvent event, HandlerTurn turn) {
        List<StoredEvent> one = List.of(event);
        boolean mayContinue = assignment.parkedKeys().contains(event.key())
                ? turn.withoutPermit(() -> failures.parkFollowing(assignment, one))
                : attempts.handle(assignment, one, turn);
        if (!mayContinue) { // no later event of the key may be handled before this one, which the next owner fetches
            assignment.leaveLaneEvent(event.offset());
        }
    }

    private void finish(Assignment assignment, StoredEvent event) {
        assignment.releaseBytes(bytes(event));
        assignment.keyQueues().finish();
        if (assignment.isEnding() && !assignment.isHandling()) {
            heartbeats.requestRelease();
        }
    }
}
