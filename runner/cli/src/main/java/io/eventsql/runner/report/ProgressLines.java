package io.eventsql.runner.report;

import io.eventsql.runner.load.LoadClock;
import java.io.PrintStream;
import java.time.Duration;

/** Prints a progress line every few seconds, for logs. */
public final class ProgressLines implements Progress {
    private static final long INTERVAL_NANOS = Duration.ofSeconds(5).toNanos();

    private final String what;
    private final long total;
    private final LoadClock clock;
    private final PrintStream out;
    private long shownAtNanos;
    private long shownPublished;

    /**
     * @param what the description of the phase
     * @param total the expected number of events; 0 if unknown
     */
    public ProgressLines(String what, long total, LoadClock clock, PrintStream out) {
        this.what = what;
        this.total = total;
        this.clock = clock;
        this.out = out;
        this.shownAtNanos = clock.nanos();
    }

    @Override
    public void show(long published, long failed) {
        long now = clock.nanos();
        long elapsed = now - shownAtNanos;
        if (elapsed < INTERVAL_NANOS) {
            return;
        }
        long perSecond = Math.round((published - shownPublished) * 1e9 / elapsed);
        out.println(what + ": " + published + (total > 0 ? " of " + total : "") + " events published, " + perSecond
                + " per second" + (failed > 0 ? ", " + failed + " failed" : ""));
        shownAtNanos = now;
        shownPublished = published;
    }

    @Override
    public void close() {}
}
