package io.eventsql.runner.testing;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.IntConsumer;
import java.util.function.LongUnaryOperator;

/**
 * A target with known service times on a {@link ManualClock}, which records its calls. Answers arrive when the
 * clock passes their time. For use by one thread.
 */
public final class SyntheticService implements PublishTarget {

    /** A received call. */
    public record Call(long atNanos, List<Event> events) {}

    private record Answer(long atNanos, CompletableFuture<Void> future) {}

    private final ManualClock clock;
    private final LongUnaryOperator serviceNanos;
    private final PriorityQueue<Answer> open = new PriorityQueue<>((a, b) -> Long.compare(a.atNanos, b.atNanos));
    private IntConsumer whenCalled = call -> {};
    public final List<Call> calls = new ArrayList<>();

    /** @param serviceNanos maps the number of a call, from 0, to its service time */
    public SyntheticService(ManualClock clock, LongUnaryOperator serviceNanos) {
        this.clock = clock;
        this.serviceNanos = serviceNanos;
        clock.whenParked(this::answerDue);
    }

    /** Sets an action to run at each call with its number, from 0. */
    public void whenCalled(IntConsumer action) {
        whenCalled = action;
    }

    @Override
    public void publish(List<Event> events) {
        long takes = serviceNanos.applyAsLong(calls.size());
        calls.add(new Call(clock.nanos(), events));
        whenCalled.accept(calls.size() - 1);
        clock.advance(takes);
    }

    @Override
    public CompletionStage<?> publishAsync(List<Event> events) {
        CompletableFuture<Void> future = new CompletableFuture<>();
        open.add(new Answer(clock.nanos() + serviceNanos.applyAsLong(calls.size()), future));
        calls.add(new Call(clock.nanos(), events));
        whenCalled.accept(calls.size() - 1);
        return future;
    }

    /** Completes due answers, each with the clock set back to its own time, as if a thread had slept until then. */
    private void answerDue() {
        long now = clock.nanos();
        while (!open.isEmpty() && open.peek().atNanos <= now) {
            Answer answer = open.remove();
            long back = clock.nanos() - answer.atNanos;
            clock.advance(-back);
            answer.future.complete(null);
            clock.advance(back);
        }
    }
}
