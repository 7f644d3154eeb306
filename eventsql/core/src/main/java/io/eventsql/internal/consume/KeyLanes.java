package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.internal.consume.KeyQueues.Lane;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
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
        } catch (RejectedExecutionException e) { // the member is closed
            LOG.debug("Not handling {}: its member is closed", assignment.name(), e);
            assignment.end();
            run(assignment, lane); // only counts the events as finished
        }
    }

    private void run(Assignment assignment, Lane lane) {
        KeyQueues queues = assignment.keyQueues();
        HandlerTurn turn = HandlerTurn.ofLane(assignment, queues.permits());
        assignment.addClock(turn.clock());
        for (StoredEvent event = queues.poll(lane); event != null; event = queues.poll(lane)) {
            turn.begin();
            try {
                handle(assignment, event, turn);
            } catch (RuntimeException | Error e) { // an error of the library, not of the handler
                LOG.error("Internal error while handling {}; stopping {}", event.position(), assignment.name(), e);
                failures.stop(assignment, "internal error: " + e);
            } finally {
                turn.end();
                finish(assignment);
            }
        }
        assignment.removeClock(turn.clock());
    }

    /** Does nothing once the partition ends: its next owner handles the event. */
    private void handle(Assignment assignment, StoredEvent event, HandlerTurn turn) {
        if (assignment.isParked(event.key())) {
            turn.withoutPermit(() -> failures.parkFollowing(assignment, List.of(event)));
        } else {
            attempts.handle(assignment, List.of(event), turn);
        }
    }

    private void finish(Assignment assignment) {
        assignment.keyQueues().finish();
        if (assignment.isEnding() && !assignment.isHandling()) {
            heartbeats.requestRelease();
        }
    }
}
