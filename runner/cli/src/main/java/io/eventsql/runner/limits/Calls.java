package io.eventsql.runner.limits;

import io.eventsql.runner.spec.PhaseSpec;

/** The ways to publish as fast as possible that several parts compare. */
final class Calls {
    private Calls() {}

    /** Callers that publish single events without waiting for answers, except while the library's buffer is full. */
    static PhaseSpec async(int callers) {
        return PhaseSpec.ofCallers("publishAsync, " + callers + " callers", callers, true, 1);
    }

    /** Callers that wait for each answer. */
    static PhaseSpec waiting(int callers, int eventsPerCall) {
        String call = eventsPerCall == 1 ? "publish" : "publishAll of " + eventsPerCall;
        return PhaseSpec.ofCallers(call + ", " + callers + " callers", callers, false, eventsPerCall);
    }
}
