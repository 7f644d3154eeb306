package io.eventsql.runner.result;

import io.eventsql.runner.series.TimeSeries;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.IntFunction;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogWriter;
import org.jspecify.annotations.Nullable;

/** Writes HdrHistogram interval logs with one interval per second, values in microseconds, and the phase as tag. */
final class HistogramLog {
    private static final double MICROS_PER_SECOND = 1e6;

    private HistogramLog() {}

    /**
     * Writes a log.
     *
     * @param startMicros the start of second 0 in epoch microseconds
     * @param ofSecond the values of a second; {@code null} if there are none
     */
    static void write(Path file, TimeSeries series, long startMicros, IntFunction<@Nullable Histogram> ofSecond)
            throws IOException {
        try (PrintStream out = new PrintStream(Files.newOutputStream(file), false, StandardCharsets.US_ASCII)) {
            HistogramLogWriter writer = new HistogramLogWriter(out);
            writer.outputComment("[one second each; values in microseconds; tag = phase]");
            writer.outputLogFormatVersion();
            double start = startMicros / MICROS_PER_SECOND;
            out.format(Locale.ROOT, "#[StartTime: %.3f (seconds since epoch)]%n", start);
            writer.outputLegend();
            for (int t : series.t()) {
                Histogram histogram = ofSecond.apply(t);
                if (histogram != null) {
                    String phase = series.phase().get(t);
                    histogram.setTag(phase == null ? "after" : phase);
                    // Prints the maximum in milliseconds.
                    writer.outputIntervalHistogram(t, t + 1.0, histogram, 1_000.0);
                }
            }
        }
    }
}
