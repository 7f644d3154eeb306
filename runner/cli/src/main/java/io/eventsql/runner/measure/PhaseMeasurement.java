package io.eventsql.runner.measure;

import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The measurement of one phase of load.
 *
 * @param sentEvents the events passed to the target
 * @param publishedEvents the acknowledged events
 * @param errors the failed events by exception class
 * @param firstIntendedAtMicros the intended time of the first call in epoch microseconds; {@code null} if there was
 *     none
 * @param lastAcknowledgedAtMicros the time of the last acknowledgement; {@code null} if there was none
 * @param latencyMicros the time from the intended call to the acknowledgement, one value per published event
 * @param serviceMicros the time from the call to the acknowledgement, one value per published event
 * @param scheduleDelayMicros the time from the intended call to the actual call, one value per call; empty if calls
 *     have no schedule
 */
public record PhaseMeasurement(
        long sentEvents,
        long publishedEvents,
        List<ErrorCount> errors,
        @Nullable Long firstIntendedAtMicros,
        @Nullable Long lastAcknowledgedAtMicros,
        Histogram latencyMicros,
        Histogram serviceMicros,
        Histogram scheduleDelayMicros) {

    /** Returns the measurement of a phase without events. */
    public static PhaseMeasurement empty() {
        return new PhaseMeasurement(
                0, 0, List.of(), null, null, Histograms.create(), Histograms.create(), Histograms.create());
    }

    /**
     * Returns the acknowledged events per second from the first intended send to the last acknowledgement; 0 if
     * unknown.
     */
    public double publishRate() {
        return publishRate(publishedEvents, firstIntendedAtMicros, lastAcknowledgedAtMicros);
    }

    /** See {@link #publishRate()}. */
    public static double publishRate(long events, @Nullable Long firstAtMicros, @Nullable Long lastAtMicros) {
        return firstAtMicros == null || lastAtMicros == null || lastAtMicros <= firstAtMicros
                ? 0
                : events * 1e6 / (lastAtMicros - firstAtMicros);
    }

    /** Returns the number of failed events. */
    public long failedEvents() {
        return errors.stream().mapToLong(ErrorCount::events).sum();
    }
}
