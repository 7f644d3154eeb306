package io.eventsql.runner.report;

import com.fasterxml.jackson.annotation.JsonIgnore;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.PhaseMeasurement;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * A {@link PhaseMeasurement} as it is kept in a file.
 *
 * @param eventsSent events handed to the library
 * @param eventsPublished events that were acknowledged
 * @param publishErrors the others
 * @param firstIntendedAtMicros when the first call was meant to happen, epoch microseconds; {@code null}: never
 * @param lastAckAtMicros when the last acknowledgement came, epoch microseconds; {@code null}: never
 * @param publishLatencyMicrosHistogram from the intended time to the acknowledgement, encoded, one value an event
 * @param serviceLatencyMicrosHistogram from the call to the acknowledgement, encoded, one value an event
 * @param scheduleDelayMicrosHistogram from the intended time to the call, encoded, one value a call
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
     * Failed events.
     *
     * @param count how many
     * @param byClass by the class of the failure
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

    /** Events acknowledged each second, from the first intended send to the last acknowledgement; 0 where unknown. */
    public double publishRate() {
        Long first = firstIntendedAtMicros;
        Long last = lastAckAtMicros;
        return first == null || last == null || last <= first ? 0 : eventsPublished * 1e6 / (last - first);
    }

    /** See {@link #publishLatencyMicrosHistogram()}. */
    @JsonIgnore
    public Histogram publishLatencyMicros() {
        return Histograms.decode(publishLatencyMicrosHistogram);
    }

    /** See {@link #serviceLatencyMicrosHistogram()}. */
    @JsonIgnore
    public Histogram serviceLatencyMicros() {
        return Histograms.decode(serviceLatencyMicrosHistogram);
    }

    /** See {@link #scheduleDelayMicrosHistogram()}. */
    @JsonIgnore
    public Histogram scheduleDelayMicros() {
        return Histograms.decode(scheduleDelayMicrosHistogram);
    }
}
