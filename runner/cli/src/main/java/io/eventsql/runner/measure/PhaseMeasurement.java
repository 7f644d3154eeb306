package io.eventsql.runner.measure;

import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * What became of one phase of load.
 *
 * @param sentEvents how many events were handed to the target
 * @param publishedEvents how many of them were acknowledged
 * @param errors the others, by the class of the failure
 * @param firstIntendedAtMicros when the first call was meant to happen, epoch microseconds; {@code null}: there was none
 * @param lastAcknowledgedAtMicros when the last acknowledgement came; {@code null}: there was none
 * @param latencyMicros from the intended time to the acknowledgement, one value for each published event
 * @param serviceMicros from the call to the acknowledgement, one value for each published event; of a call that failed
 *     only for some of its events, from the intended time
 * @param scheduleDelayMicros from the intended time to the call, one value for each call; empty where calls have no
 *     schedule
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

    /** A phase in which nothing was sent. */
    public static PhaseMeasurement empty() {
        return new PhaseMeasurement(
                0, 0, List.of(), null, null, Histograms.create(), Histograms.create(), Histograms.create());
    }

    /** How many events failed. */
    public long failedEvents() {
        return errors.stream().mapToLong(ErrorCount::events).sum();
    }
}
