package io.eventsql.runner.load;

/** Makes publish calls without waiting for their answers. */
final class AsyncCall {
    /** Longer than the publish timeout of any target, so that no later answer can be expected. */
    static final long ANSWER_TIMEOUT_NANOS = 60_000_000_000L;

    /** The timeout after Ctrl-C. */
    static final long ANSWER_TIMEOUT_INTERRUPTED_NANOS = 5_000_000_000L;

    private static final long POLL_NANOS = 1_000_000;

    private AsyncCall() {}

    static void send(LoadContext context, LoadListener listener, LoadCall call) {
        long intended = call.intendedNanos();
        int events = call.events().size();
        long called = context.clock().nanos();
        listener.sent(intended, called, events);
        try {
            call.stream().target().publishAsync(call.events()).whenComplete((stored, failure) -> {
                long now = context.clock().nanos();
                if (failure == null) {
                    call.recordAcknowledged();
                    listener.acknowledged(intended, called, now, events);
                } else {
                    call.recordFailed(failure);
                    listener.failed(intended, now, events, failure);
                }
            });
        } catch (RuntimeException rejected) {
            call.recordFailed(rejected);
            listener.failed(intended, context.clock().nanos(), events, rejected);
        }
    }

    /** Waits until all sent events are answered. Reports those unanswered after a timeout as failed. */
    static void awaitAnswers(LoadContext context, LoadListener listener, long sentEvents) {
        long started = context.clock().nanos();
        while (listener.answeredEvents() < sentEvents) {
            long now = context.clock().nanos();
            long timeout = context.stop().isInterrupted() ? ANSWER_TIMEOUT_INTERRUPTED_NANOS : ANSWER_TIMEOUT_NANOS;
            if (now - started > timeout) {
                int unanswered = Math.toIntExact(sentEvents - listener.answeredEvents());
                listener.failed(started, now, unanswered, new UnansweredException(timeout));
                return;
            }
            context.clock().parkNanos(POLL_NANOS);
        }
    }
}
