package io.eventsql.runner.report;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.series.RunSeries;

/** Displays progress and closes the elapsed seconds of a series. */
public final class SeriesProgress implements Progress {
    private final Progress shown;
    private final RunSeries series;
    private final LoadClock clock;

    public SeriesProgress(Progress shown, RunSeries series, LoadClock clock) {
        this.shown = shown;
        this.series = series;
        this.clock = clock;
    }

    @Override
    public void show(long published, long failed) {
        shown.show(published, failed);
        series.closeElapsedSeconds(clock.nanos());
    }

    @Override
    public void close() {
        shown.close();
    }
}
