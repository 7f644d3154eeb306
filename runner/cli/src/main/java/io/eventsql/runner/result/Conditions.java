package io.eventsql.runner.result;

import io.eventsql.runner.consumption.CompilationTime;
import io.eventsql.runner.consumption.WarmupWatch;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.sample.ResourceSeries;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What a reader needs to know about machine and JVMs to judge the latencies.
 *
 * @param machineBusyShare the share of all processors' time in which they were busy during the measured phase, 0 to 1;
 *     of several machines with runners the busiest; {@code null} if unknown
 * @param machineSaturated whether that share is so high that latencies include waiting for a processor
 * @param warmupSeconds the duration of the warm-up; {@code null} without one
 * @param warmupWarm whether the JVMs hardly compiled at its end; {@code null} for a warm-up of a fixed duration
 * @param compilationSeconds the time for which compilers of all JVMs were active during the measured phase; {@code
 *     null} if unknown
 * @param samplerShare the share of all processors' time that sampling by all runners took, 0 to 1; {@code null} if
 *     unknown
 * @param runnerJavaOptions the JVM options of the runners
 * @param appJavaOptions the JVM options of the apps
 */
public record Conditions(
        @Nullable Double machineBusyShare,
        boolean machineSaturated,
        @Nullable Double warmupSeconds,
        @Nullable Boolean warmupWarm,
        @Nullable Double compilationSeconds,
        @Nullable Double samplerShare,
        List<String> runnerJavaOptions,
        List<String> appJavaOptions) {
    /** Above it, a thread that becomes ready usually waits for a processor. */
    static final double SATURATED_MIN_SHARE = 0.9;

    private static final double MILLIS_PER_SECOND = 1_000;

    /** Returns the conditions of a run with the given runners, at least one. */
    static Conditions of(List<RunnerResult> runners) {
        List<RunnerResult.Jvms> jvms = present(runners.stream().map(RunnerResult::jvms));
        Double busy = busyShare(runners);
        List<WarmupWatch.Outcome> warmups = present(jvms.stream().map(RunnerResult.Jvms::warmup));
        return new Conditions(
                busy == null ? null : (Double) Statistics.rounded(busy, 1_000),
                busy != null && busy >= SATURATED_MIN_SHARE,
                warmups.isEmpty()
                        ? null
                        : (Double) warmups.stream()
                                .mapToDouble(WarmupWatch.Outcome::seconds)
                                .max()
                                .orElseThrow(),
                warmups.stream().noneMatch(WarmupWatch.Outcome::untilWarm)
                        ? null
                        : (Boolean) warmups.stream().allMatch(WarmupWatch.Outcome::warm),
                compilationSeconds(jvms),
                samplerShare(runners),
                jvms.isEmpty() ? List.of() : jvms.getFirst().runnerOptions(),
                jvms.isEmpty() ? List.of() : jvms.getFirst().appOptions());
    }

    private static <T> List<T> present(Stream<@Nullable T> values) {
        return values.<T>mapMulti((value, next) -> {
                    if (value != null) {
                        next.accept(value);
                    }
                })
                .toList();
    }

    private static @Nullable Double busyShare(List<RunnerResult> runners) {
        List<RunnerResult.Series> series = present(runners.stream().map(RunnerResult::series));
        List<Double> shares = present(series.stream().map(Conditions::measuredBusyShare));
        return shares.isEmpty() ? null : Collections.max(shares);
    }

    private static @Nullable Double samplerShare(List<RunnerResult> runners) {
        List<RunnerResult.Series> series = present(runners.stream().map(RunnerResult::series));
        List<Double> shares =
                present(series.stream().map(ofRunner -> ofRunner.resources().samplerShare()));
        double sum = shares.stream().mapToDouble(Double::doubleValue).sum();
        return shares.isEmpty() ? null : (Double) Statistics.rounded(sum, 100_000);
    }

    /** The seconds after the measured phase, in which the rest is consumed, do not count. */
    private static @Nullable Double measuredBusyShare(RunnerResult.Series series) {
        int seconds =
                (int) series.seconds().phase().stream().filter(Objects::nonNull).count();
        return series.resources().mean(ResourceSeries.MACHINE_BUSY_SHARE, 0, seconds);
    }

    /** Each runner reports the time of all apps, so that of one runner is taken. */
    private static @Nullable Double compilationSeconds(List<RunnerResult.Jvms> jvms) {
        double millis = 0;
        long appsMs = 0;
        for (RunnerResult.Jvms ofRunner : jvms) {
            CompilationTime time = ofRunner.measuredCompilation();
            if (time == null) {
                return null;
            }
            millis += time.runnerMs();
            appsMs = Math.max(appsMs, time.appsMs());
        }
        return jvms.isEmpty() ? null : (Double) ((millis + appsMs) / MILLIS_PER_SECOND);
    }

    /** Returns the lines of the report. */
    public List<String> lines() {
        List<String> lines = new ArrayList<>();
        Double busy = machineBusyShare;
        if (machineSaturated && busy != null) {
            lines.add(String.format(
                    Locale.ROOT,
                    "The machine's processors were %.0f %% busy: latencies include waiting for a processor.",
                    100 * busy));
        }
        Double warmup = warmupSeconds;
        if (warmup != null) {
            lines.add(String.format(Locale.ROOT, "Warm-up of %.0f s%s", warmup, warmth()));
        }
        Double compilation = compilationSeconds;
        if (compilation != null) {
            lines.add(String.format(
                    Locale.ROOT, "Compilers of the JVMs were active for %.1f s while measuring", compilation));
        }
        Double sampling = samplerShare;
        if (sampling != null) {
            lines.add(ResourceSeries.samplerLine(sampling));
        }
        if (!runnerJavaOptions.isEmpty()) {
            lines.add("JVM options of the runners: " + String.join(" ", runnerJavaOptions));
        }
        if (!appJavaOptions.isEmpty()) {
            lines.add("JVM options of the apps: " + String.join(" ", appJavaOptions));
        }
        return lines;
    }

    private String warmth() {
        Boolean warm = warmupWarm;
        if (warm == null) {
            return "";
        }
        return warm
                ? ", until the JVMs hardly compiled"
                : ", after which the JVMs still compiled: latencies include waiting for their compilers";
    }
}
