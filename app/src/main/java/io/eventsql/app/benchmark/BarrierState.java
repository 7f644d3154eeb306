package io.eventsql.app.benchmark;

import org.jspecify.annotations.Nullable;

/**
 * How far a barrier is.
 *
 * @param arrived how many different runners have arrived
 * @param runners how many it waits for
 * @param startAtMicros when all of them shall start, in microseconds since 1970; {@code null} while one is missing
 * @param nowMicros this app's clock, in microseconds since 1970, for runners to compare theirs with
 */
record BarrierState(int arrived, int runners, @Nullable Long startAtMicros, long nowMicros) {}
