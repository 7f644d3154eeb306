package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonIgnore;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.PhaseMeasurement;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * A {@link PhaseMeasurement} in its file format.
 *
 * @param eventsSent the events passed to the library
 * @param eventsPublished the acknowledged events
 * @param publishErrors the failed events
 * @param firstIntendedAtMicros the intended time of the first call in epoch microseconds; {@code null} if there was
 *     none
 * @param lastAckAtMicros the time of the last acknowledgement in epoch microseconds; {@code null} if there was none
 * @param publishLatencyMicrosHistogram the encoded latencies from the intended time to the acknowledgement, one value
 *     per event
 * @param serviceLatencyMicrosHistogram the encoded latencies from the call to the acknowledgement, one value per event
 * @param scheduleDelayMicrosHistogram the encoded delays from the intended time to the call, one value per call
 */
public record PhaseResult(
        long eventsSent,
        long eventsPublished,
        Errors publishErrors,
        @Nullable Long firstIntendedAtMicros,
        @Nullable Long lastAckAtMicros,
        String publishLatencyMicrosHistogram,
        String serviceLatencyMicrosHistogram,
        String scheduleDelayMicrosHistogram) {

    /**
     * The failed events.
     *
     * @param count the number of failed events
     * @param byClass the failures by exception class
     */
    public record Errors(long count, List<ErrorCount> byClass) {}

    public static PhaseResult of(PhaseMeasurement phase) {
        return new PhaseResult(
                phase.sentEvents(),
                phase.publishedEvents(),
                new Errors(phase.failedEvents(), phase.errors()),
                phase.firstIntendedAtMicros(),
                phase.lastAcknowledgedAtMicros(),
                Histograms.encode(phase.latencyMicros()),
                Histograms.encode(phase.serviceMicros()),
                Histograms.encode(phase.scheduleDelayMicros()));
    }

    /** See {@link PhaseMeasurement#publishRate()}. */
    public double publishRate() {
        return PhaseMeasurement.publishRate(eventsPublished, firstIntendedAtMicros, lastAckAtMicros);
    }

    /** Returns the decoded {@link #publishLatencyMicrosHistogram()}. */
    @JsonIgnore
    public Histogram publishLatencyMicros() {
        return Histograms.decode(publishLatencyMicrosHistogram);
    }

    /** Returns the decoded {@link #serviceLatencyMicrosHistogram()}. */
    @JsonIgnore
    public Histogram serviceLatencyMicros() {
        return Histograms.decode(serviceLatencyMicrosHistogram);
    }

    /** Returns the decoded {@link #scheduleDelayMicrosHistogram()}. */
    @JsonIgnore
    public Histogram scheduleDelayMicros() {
        return Histograms.decode(scheduleDelayMicrosHistogram);
    }
}
