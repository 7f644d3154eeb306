package io.eventsql.app.benchmark;

import org.jspecify.annotations.Nullable;

/**
 * The state of a barrier.
 *
 * @param arrived the number of runners that have arrived
 * @param runners the number of expected runners
 * @param startAtMicros the common start time in epoch microseconds; {@code null} until all runners have arrived
 * @param nowMicros the app's current time in epoch microseconds, for clock comparison
 */
record BarrierState(int arrived, int runners, @Nullable Long startAtMicros, long nowMicros) {}
