package io.eventsql.runner.consumption;

import java.io.IOException;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;

/**
 * The time for which compilers have been active. A compiler that waits for a processor is active.
 *
 * @param runnerMs in the JVM of this runner, in milliseconds
 * @param appsMs in the JVMs of all apps together, in milliseconds
 */
public record CompilationTime(long runnerMs, long appsMs) {

    /** Reads the current times. */
    public interface Source {
        /**
         * Returns the times since the start of the JVMs.
         *
         * @throws IOException if an app does not respond, or does not know its time
         */
        CompilationTime now() throws IOException;
    }

    /**
     * Returns the times since the start of the JVMs.
     *
     * @throws IOException if an app does not respond, or does not know its time
     */
    public static CompilationTime now(Apps apps) throws IOException {
        return new CompilationTime(ofThisJvm(), apps.compilationMs());
    }

    /** Returns 0 for a JVM without a compiler. */
    private static long ofThisJvm() {
        CompilationMXBean compilation = ManagementFactory.getCompilationMXBean();
        return compilation == null || !compilation.isCompilationTimeMonitoringSupported()
                ? 0
                : compilation.getTotalCompilationTime();
    }

    /** Returns the sum over the JVMs, in milliseconds. */
    public long totalMs() {
        return runnerMs + appsMs;
    }

    /** Returns the times since an earlier point in time. */
    public CompilationTime since(CompilationTime earlier) {
        return new CompilationTime(runnerMs - earlier.runnerMs, appsMs - earlier.appsMs);
    }
}
