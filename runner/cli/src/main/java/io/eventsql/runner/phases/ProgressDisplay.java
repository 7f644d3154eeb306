package io.eventsql.runner.phases;

import io.eventsql.runner.load.LoadClock;
import java.io.Console;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** Displays progress as a bar on a terminal, and as lines elsewhere. */
public final class ProgressDisplay {
    private final LoadClock clock;
    private final PrintStream out;
    private final boolean bars;

    private ProgressDisplay(LoadClock clock, PrintStream out, boolean bars) {
        this.clock = clock;
        this.out = out;
        this.bars = bars;
    }

    /** Creates a display with bars on a terminal and lines elsewhere. */
    public static ProgressDisplay create(PrintStream out, LoadClock clock) {
        return new ProgressDisplay(clock, out, isTerminal());
    }

    /** Creates a display that always uses lines. */
    public static ProgressDisplay lines(PrintStream out, LoadClock clock) {
        return new ProgressDisplay(clock, out, false);
    }

    /**
     * Starts the display of a phase.
     *
     * @param what the description of the phase
     * @param total the expected number of events; 0 if unknown
     */
    public Progress start(String what, long total) {
        return bars ? new Bar(what, total, out) : new Lines(what, total, clock, out);
    }

    /** Since Java 22, a console may exist without a terminal, which {@code isTerminal} detects. */
    @SuppressWarnings("SystemConsoleNull") // Before Java 22, null means that there is no terminal.
    private static boolean isTerminal() {
        Console console = System.console();
        if (console == null) {
            return false;
        }
        try {
            return (Boolean) Console.class.getMethod("isTerminal").invoke(console);
        } catch (NoSuchMethodException e) {
            return true;
        } catch (IllegalAccessException | InvocationTargetException e) {
            return false;
        }
    }

    private static final class Bar implements Progress {
        private final ProgressBar bar;

        Bar(String what, long total, PrintStream out) {
            bar = new ProgressBarBuilder()
                    .setTaskName(what)
                    .setInitialMax(total > 0 ? total : -1)
                    .setUnit(" events", 1)
                    .setStyle(ProgressBarStyle.ASCII)
                    .setUpdateIntervalMillis(500)
                    .showSpeed()
                    .setConsumer(new ConsoleProgressBarConsumer(out))
                    .build();
        }

        @Override
        public void show(long published, long failed) {
            bar.stepTo(published);
            bar.setExtraMessage(failed > 0 ? failed + " failed" : "");
        }

        @Override
        public void close() {
            bar.close();
        }
    }

    /** Prints a progress line every few seconds, for logs. */
    private static final class Lines implements Progress {
        private static final long INTERVAL_NANOS = Duration.ofSeconds(5).toNanos();

        private final String what;
        private final long total;
        private final LoadClock clock;
        private final PrintStream out;
        private long shownAtNanos;
        private long shownPublished;

        Lines(String what, long total, LoadClock clock, PrintStream out) {
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
}
