package io.eventsql.runner.series;

import io.eventsql.runner.load.LoadListener;

/** Records a load second by second and forwards to another listener. Thread-safe. */
public final class SeriesListener implements LoadListener {
    private final LoadListener listener;
    private final RunSeries series;

    public SeriesListener(LoadListener listener, RunSeries series) {
        this.listener = listener;
        this.series = series;
    }

    @Override
    public void called(long intendedNanos, long calledNanos) {
        listener.called(intendedNanos, calledNanos);
    }

    @Override
    public void sent(long intendedNanos, long calledNanos, int events) {
        series.recordSent(intendedNanos, calledNanos, events);
        listener.sent(intendedNanos, calledNanos, events);
    }

    @Override
    public void missed(long intendedNanos, int events) {
        series.recordMissed(intendedNanos, events);
        listener.missed(intendedNanos, events);
    }

    @Override
    public void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events) {
        series.recordAcknowledged(acknowledgedNanos, (acknowledgedNanos - intendedNanos) / 1_000, events);
        listener.acknowledged(intendedNanos, calledNanos, acknowledgedNanos, events);
    }

    @Override
    public void failed(long intendedNanos, long failedNanos, int events, Throwable failure) {
        series.recordFailed(intendedNanos, failedNanos, events, failure);
        listener.failed(intendedNanos, failedNanos, events, failure);
    }

    @Override
    public long answeredEvents() {
        return listener.answeredEvents();
    }
}
