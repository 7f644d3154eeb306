package io.eventsql.runner.result;

import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.spec.RunSettings;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.HdrHistogram.Histogram;

/** Renders the lines that a runner prints about its run. */
public final class RunnerText {
    private final RunSettings settings;

    public RunnerText(RunSettings settings) {
        this.settings = settings;
    }

    /** Returns the lines about publishing. */
    public List<String> published(PhaseMeasurement measured) {
        List<String> lines = new ArrayList<>();
        Long first = measured.firstIntendedAtMicros();
        Long last = measured.lastAcknowledgedAtMicros();
        if (first == null || last == null) {
            lines.add("Nothing was published");
        } else {
            lines.addAll(throughput("Publishing", measured.publishedEvents(), last - first));
        }
        lines.add(latency("Publish latency", measured.latencyMicros()));
        if (settings.load().hasRate()) {
            lines.add(latency("Schedule delay", measured.scheduleDelayMicros()));
        }
        lines.addAll(errors(measured.errors()));
        return lines;
    }

    /**
     * Returns the lines about consumption.
     *
     * @param events the consumed events
     * @param tookMicros the time from the first intended send until all events were consumed, in microseconds
     */
    public List<String> consumed(long events, long tookMicros) {
        return throughput("Consuming", events, tookMicros);
    }

    /** Returns a line for each class of failure. */
    public static List<String> errors(List<ErrorCount> errors) {
        return errors.stream()
                .map(error ->
                        error.events() + " events failed with " + error.errorClass() + ": " + error.firstMessage())
                .toList();
    }

    private List<String> throughput(String what, long events, long micros) {
        Duration took = Duration.ofMillis(Math.round(micros / 1_000.0));
        long perSecond = micros <= 0 ? 0 : Math.round(events * 1e6 / micros);
        List<String> lines = new ArrayList<>();
        lines.add(what + " " + events + " events " + pace() + " took: " + took + ", which means " + perSecond
                + " per second rate");
        int runners = settings.identity().runners();
        if (runners > 1) {
            lines.add(runners + " runner instances were running in parallel, so the real rate was "
                    + perSecond * runners + " per second for " + events * runners + " events");
        }
        return lines;
    }

    private String pace() {
        return settings.load().hasRate()
                ? "with " + settings.load().eventsPerSecond() + " per second rate"
                : "as fast as possible";
    }

    private static String latency(String what, Histogram micros) {
        Percentiles ms = Percentiles.ofMicros(micros);
        return String.format(
                Locale.ROOT,
                "%s in ms: p50 %.3f, p99 %.3f, p99.9 %.3f, max %.3f",
                what,
                ms.p50(),
                ms.p99(),
                ms.p999(),
                ms.max());
    }
}
