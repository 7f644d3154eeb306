package io.eventsql.internal.append;

import io.eventsql.internal.append.PublishCall.Return;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The parts into which a batch is split while it is appended, in the order in which they are to be sent. They have no
 * numbers: numbers rise in the order of sending, which may change. Used by one thread.
 */
final class BatchParts {
    private final PublishQueue queue;
    private final Batch whole;
    private final Deque<Batch> waiting = new ArrayDeque<>();
    /** Batches taken in addition, while the whole batch was in progress. */
    private final List<Batch> added = new ArrayList<>();
    /** The keys of the calls that were given back to wait: later calls with one of them must follow. */
    private final Set<String> heldKeys = new HashSet<>();

    BatchParts(PublishQueue queue, Batch whole) {
        this.queue = queue;
        this.whole = whole;
    }

    /** Removes and returns the next part; {@code null} if there is none. */
    @Nullable
    Batch next() {
        return waiting.poll();
    }

    /** Halves a part. Keeps the order of the calls. */
    void split(Batch part) {
        List<PublishCall> calls = part.calls();
        int half = calls.size() / 2;
        waiting.addFirst(part.withCalls(calls.subList(half, calls.size())));
        waiting.addFirst(part.withCalls(calls.subList(0, half)));
    }

    /**
     * Lets the other parts come before a single call. Calls that must follow it, because of a common key, still do. If there
     * is no other part, further calls of the same lanes are taken from the queue.
     *
     * @return {@code false} if no other call comes before
     */
    boolean defer(Batch part) {
        List<Batch> before = new ArrayList<>();
        List<Batch> after = new ArrayList<>();
        do {
            after.clear();
            divide(part, before, after);
        } while (before.isEmpty() && addFromQueue());
        waiting.clear();
        waiting.addAll(before);
        waiting.add(part);
        waiting.addAll(after);
        return !before.isEmpty();
    }

    /** Gives a call that waits for a transaction, or for its stream, back to the queue, and those that must follow it. */
    void hold(Batch part) {
        List<Batch> others = new ArrayList<>();
        List<Batch> after = new ArrayList<>();
        divide(part, others, after);
        returnToQueue(part, Return.HOLD);
        after.forEach(other -> returnToQueue(other, Return.FOLLOW));
        waiting.clear();
        waiting.addAll(others);
    }

    private void returnToQueue(Batch part, Return reason) {
        part.calls().forEach(call -> call.addKeysTo(heldKeys));
        part.returnToQueue(reason);
    }

    /** Divides the other parts into what may come before the call, and what must follow it. */
    private void divide(Batch part, List<Batch> before, List<Batch> after) {
        Set<String> keys = new HashSet<>();
        part.calls().getFirst().addKeysTo(keys);
        for (Batch other : waiting) {
            List<PublishCall> independent = new ArrayList<>();
            List<PublishCall> dependent = new ArrayList<>();
            for (PublishCall call : other.calls()) {
                if (call.hasKeyOf(keys)) {
                    call.addKeysTo(keys); // what shares another key with it must follow, too
                    dependent.add(call);
                } else {
                    independent.add(call);
                }
            }
            addPart(before, other, independent);
            addPart(after, other, dependent);
        }
    }

    private void addPart(List<Batch> parts, Batch of, List<PublishCall> calls) {
        if (calls.size() == of.calls().size()) {
            parts.add(of); // it keeps its timeouts
        } else if (!calls.isEmpty()) {
            parts.add(of.withCalls(calls));
        }
    }

    /** Returns whether there were more calls. */
    private boolean addFromQueue() {
        Batch more = queue.takeMore(whole);
        if (more == null) {
            return false;
        }
        added.add(more);
        List<PublishCall> independent = new ArrayList<>();
        for (PublishCall call : more.calls()) {
            if (call.hasKeyOf(heldKeys)) {
                returnToQueue(more.withCalls(List.of(call)), Return.FOLLOW);
            } else {
                independent.add(call);
            }
        }
        if (!independent.isEmpty()) {
            waiting.add(more.withCalls(independent));
        }
        return true;
    }

    /** Gives the calls of a part back to the queue, and those of all parts that would have followed, which must not overtake it. */
    void returnToQueue(Batch part) {
        part.returnToQueue(Return.REROUTE);
        waiting.forEach(other -> other.returnToQueue(Return.REROUTE));
        waiting.clear();
    }

    /** Releases the calls that were taken in addition. */
    void finish() {
        added.forEach(queue::finish);
    }

    /** Fails the calls that were taken in addition, after an unexpected failure. */
    void fail(Throwable failure) {
        for (Batch batch : added) {
            batch.calls().forEach(call -> call.failUnexpectedly(failure));
        }
    }
}
