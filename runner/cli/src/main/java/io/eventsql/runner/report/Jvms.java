package io.eventsql.runner.report;

import io.eventsql.runner.warmup.CompilationTime;
import io.eventsql.runner.warmup.WarmupOutcome;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The JVMs of a runner and of the apps.
 *
 * @param warmup how the warm-up ended; {@code null} if there was none
 * @param measuredCompilation the compilation time during the measured phase; {@code null} if unknown
 * @param runnerOptions the JVM options of the runner
 * @param appOptions the JVM options of the first app; empty if unknown
 */
public record Jvms(
        @Nullable WarmupOutcome warmup,
        @Nullable CompilationTime measuredCompilation,
        List<String> runnerOptions,
        List<String> appOptions) {}
