package io.eventsql.runner.limits;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadListener;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.util.List;
import java.util.stream.Stream;

/**
 * Records a load in ten intervals of equal length. Each event belongs to the interval of its intended send time.
 * Thread-safe.
 */
final class TenthsMeter implements LoadListener {
    static final int TENTHS = 10;

    private final long startNanos;
    private final long nanos;
    private final List<PublishMeter> tenths =
            Stream.generate(PublishMeter::new).limit(TENTHS).toList();

    /**
     * @param startNanos the start of the load on the monotonic clock
     * @param nanos the duration of the load
     */
    TenthsMeter(long startNanos, long nanos) {
        this.startNanos = startNanos;
        this.nanos = nanos;
    }

    @Override
    public void called(long intendedNanos, long calledNanos) {
        meterOf(intendedNanos).called(intendedNanos, calledNanos);
    }

    @Override
    public void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events) {
        meterOf(intendedNanos).acknowledged(intendedNanos, calledNanos, acknowledgedNanos, events);
    }

    @Override
    public void failed(long intendedNanos, long failedNanos, int events, Throwable failure) {
        meterOf(intendedNanos).failed(intendedNanos, failedNanos, events, failure);
    }

    @Override
    public long answeredEvents() {
        return tenths.stream().mapToLong(PublishMeter::answeredEvents).sum();
    }

    /** Returns the measurements so far by tenth. */
    List<PhaseMeasurement> measurements(ClockAnchor anchor) {
        return tenths.stream()
                .map(tenth -> tenth.measurement(tenth.answeredEvents(), anchor))
                .toList();
    }

    private PublishMeter meterOf(long intendedNanos) {
        // Unanswered calls are reported with a time after the end.
        long tenth = (intendedNanos - startNanos) * TENTHS / nanos;
        return tenths.get(Math.clamp(tenth, 0, TENTHS - 1));
    }
}
