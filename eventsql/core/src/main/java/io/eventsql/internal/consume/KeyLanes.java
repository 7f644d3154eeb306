package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.consume.KeyQueues.Lane;
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
    private final HandlerThreads threads;
    private final HeartbeatSchedule heartbeats;

    KeyLanes(Attempts attempts, Failures failures, HandlerThreads threads, HeartbeatSchedule heartbeats) {
        this.attempts = attempts;
        this.failures = failures;
        this.threads = threads;
        this.heartbeats = heartbeats;
    }

    /** Puts a page into the lanes; returns when these have room for another one. Lanes have turns of their own. */
    @Override
    public void handle(Assignment assignment, List<StoredEvent> page, HandlerTurn turn) {
        KeyQueues queues = assignment.keyQueues();
        for (StoredEvent event : page) {
            queues.add(event).ifPresent(lane -> start(assignment, lane));
        }
        turn.withoutPermit(() -> queues.awaitAtMost(assignment.spec().pageEvents()));
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
            while (queues.poll(lane) != null) {
                finish(assignment);
            }
        }
    }

    private void handleAll(Assignment assignment, Lane lane, KeyQueues queues) {
        HandlerTurn turn = HandlerTurn.ofLane(assignment, queues.permits());
        assignment.addClock(turn.clock());
        for (StoredEvent event = queues.poll(lane); event != null; event = queues.poll(lane)) {
            turn.begin();
            try {
                handle(assignment, event, turn);
            } catch (Throwable e) { // an error of the library, not of the handler
                turn.end();
                failures.abort(assignment, e);
            } finally {
                turn.end();
                finish(assignment);
            }
        }
        assignment.removeClock(turn.clock());
    }

    /** Does nothing once the partition ends: its next owner handles the event. */
    private void handle(Assignment assignment, StoredEvent event, HandlerTurn turn) {
        List<StoredEvent> one = List.of(event);
        boolean mayContinue = assignment.isParked(event.key())
                ? turn.withoutPermit(() -> failures.parkFollowing(assignment, one))
                : attempts.handle(assignment, one, turn);
        if (!mayContinue) { // no later event of the key may be handled before this one, which the next owner fetches
            assignment.drain();
        }
    }

    private void finish(Assignment assignment) {
        assignment.keyQueues().finish();
        if (assignment.isEnding() && !assignment.isHandling()) {
            heartbeats.requestRelease();
        }
    }
}
