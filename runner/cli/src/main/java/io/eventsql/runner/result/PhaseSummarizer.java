package io.eventsql.runner.result;

import static io.eventsql.runner.measure.Statistics.rounded;

import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.phases.PhaseLoad;
import io.eventsql.runner.result.RunResult.PhaseMetrics;
import io.eventsql.runner.spec.RunSpec;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;

/** Computes the metrics of completed phases. */
public final class PhaseSummarizer {
    private static final double MICROS_PER_SECOND = 1e6;
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double BYTES_PER_MB = 1e6;
    /** The approximate size of an {@code account_created} event. */
    private static final int ACCOUNT_CREATED_BYTES = 230;

    private final RunSpec spec;
    private final Histogram publishMicros = Histograms.create();
    private final Histogram endToEndMicros = Histograms.create();

    public PhaseSummarizer(RunSpec spec) {
        this.spec = spec;
    }

    /** Computes the metrics of each phase and adds its values to the histograms. */
    public List<PhaseMetrics> summarize(List<PhaseLoad> phases) {
        List<PhaseMetrics> metrics = new ArrayList<>();
        phases.forEach(phase -> metrics.add(summarize(phase)));
        return metrics;
    }

    private PhaseMetrics summarize(PhaseLoad phase) {
        PhaseMeasurement measurement = phase.measurement();
        Histogram endToEnd = phase.endToEndMicros();
        if (phase.spec().measured()) {
            publishMicros.add(measurement.latencyMicros());
            endToEndMicros.add(endToEnd);
        }
        double seconds = (phase.endedNanos() - phase.startNanos()) / NANOS_PER_SECOND;
        double publishRate = measurement.publishRate();
        int bytes = spec.events().bytes() == 0
                ? ACCOUNT_CREATED_BYTES
                : spec.events().bytes();
        boolean openLoop = phase.eventsPerSecond() > 0;
        boolean consumed = spec.streams().consumers() > 0 && phase.spec().measured();
        return new PhaseMetrics(
                phase.spec().name(),
                phase.spec().measured(),
                phase.startedAtMicros(),
                rounded(seconds, 1_000),
                openLoop ? phase.eventsPerSecond() : rounded(seconds == 0 ? 0 : phase.sentEvents() / seconds, 10),
                phase.sentEvents(),
                measurement.publishedEvents(),
                measurement.failedEvents(),
                phase.missedEvents(),
                measurement.errors(),
                rounded(publishRate, 10),
                rounded(publishRate * bytes / BYTES_PER_MB, 1_000),
                consumed ? rounded(consumeRate(phase), 10) : 0,
                Percentiles.ofMicros(measurement.latencyMicros()),
                Percentiles.ofMicros(measurement.serviceMicros()),
                openLoop ? Percentiles.ofMicros(measurement.scheduleDelayMicros()) : null,
                consumed ? Percentiles.ofMicros(endToEnd) : null);
    }

    private static double consumeRate(PhaseLoad phase) {
        long took = phase.lastDeliveredAtMicros() - phase.startedAtMicros();
        return phase.deliveredEvents() == 0 || took <= 0 ? 0 : phase.deliveredEvents() * MICROS_PER_SECOND / took;
    }

    /** Returns the values of all measured phases summarized so far. */
    public RunResult.RawHistograms histograms() {
        return new RunResult.RawHistograms(Histograms.encode(publishMicros), Histograms.encode(endToEndMicros));
    }
}
