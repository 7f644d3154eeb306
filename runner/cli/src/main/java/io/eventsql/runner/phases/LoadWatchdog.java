package io.eventsql.runner.phases;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.measure.RunSeries;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Monitors a running load: displays its progress every second, and aborts it if no event is acknowledged for a minute.
 * Otherwise each call would wait for its own timeout.
 */
public final class LoadWatchdog implements AutoCloseable {
    static final long NO_PROGRESS_NANOS = Duration.ofSeconds(60).toNanos();

    private final PublishMeter meter;
    private final Progress progress;
    private final RunSeries series;
    private final LoadClock clock;
    private final StopSignal stop;
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("load-watch").factory());
    private long lastPublished;
    private long lastProgressNanos;

    private LoadWatchdog(PublishMeter meter, Progress progress, RunSeries series, LoadClock clock, StopSignal stop) {
        this.meter = meter;
        this.progress = progress;
        this.series = series;
        this.clock = clock;
        this.stop = stop;
        this.lastProgressNanos = clock.nanos();
    }

    /**
     * Starts monitoring.
     *
     * @param series records the load; its elapsed seconds are closed
     */
    @SuppressWarnings("FutureReturnValueIgnored") // Cancelled with the timer.
    public static LoadWatchdog start(
            PublishMeter meter, Progress progress, RunSeries series, LoadClock clock, StopSignal stop) {
        LoadWatchdog watchdog = new LoadWatchdog(meter, progress, series, clock, stop);
        watchdog.timer.scheduleAtFixedRate(watchdog::check, 1, 1, TimeUnit.SECONDS);
        return watchdog;
    }

    /** Displays the progress, closes elapsed seconds of the series and checks for acknowledgements. */
    public synchronized void check() {
        long published = meter.publishedEvents();
        progress.show(published, meter.failedEvents());
        long now = clock.nanos();
        series.closeElapsedSeconds(now);
        if (published > lastPublished) {
            lastPublished = published;
            lastProgressNanos = now;
        } else if (now - lastProgressNanos > NO_PROGRESS_NANOS) {
            stop.raise(StopSignal.Reason.NO_PROGRESS);
        }
    }

    @Override
    public void close() {
        timer.shutdownNow();
        synchronized (this) {
            progress.close();
        }
    }
}
