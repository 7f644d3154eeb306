package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.flink.FlinkCluster;
import io.eventsql.flink.FlinkFixture;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.jspecify.annotations.Nullable;

/** The jobs of a test on the mini cluster of this JVM. They are restarted without limit. */
final class TestCluster implements AutoCloseable {
    private static final long DEADLINE_NANOS = TimeUnit.MINUTES.toNanos(2);
    private static final Duration NEVER = Duration.ofDays(1);
    private static final int ATTEMPTS_MAX = 100;

    private final MiniCluster cluster = FlinkCluster.get();
    private final List<JobID> jobs = new ArrayList<>();
    private final Path folder;

    /** @param folder of the savepoints */
    TestCluster(Path folder) {
        this.folder = folder;
    }

    /**
     * Starts a job.
     *
     * @param checkpoints how often; {@code null}: only savepoints
     * @param savepoint to start from; {@code null}: without state
     */
    JobID submit(
            int parallelism,
            @Nullable Duration checkpoints,
            @Nullable String savepoint,
            Consumer<StreamExecutionEnvironment> job)
            throws Exception {
        StreamExecutionEnvironment environment = FlinkFixture.environment(parallelism);
        if (checkpoints == null) {
            environment.enableCheckpointing(NEVER.toMillis());
            environment.getCheckpointConfig().setMinPauseBetweenCheckpoints(NEVER.toMillis());
        } else {
            environment.enableCheckpointing(checkpoints.toMillis());
        }
        environment.setMaxParallelism(12);
        job.accept(environment);
        StreamGraph graph = environment.getStreamGraph();
        graph.getJobConfiguration()
                .set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
        if (savepoint != null) {
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(savepoint));
        }
        JobID id = cluster.submitJob(graph.getJobGraph()).get().getJobID();
        jobs.add(id);
        await("the job to run", () -> status(id) == JobStatus.RUNNING);
        return id;
    }

    JobStatus status(JobID job) {
        return cluster.getJobStatus(job).join();
    }

    /** Takes a savepoint; the job continues, and commits nothing of it. Returns its path. */
    String savepoint(JobID job) {
        return whenTasksRun(() -> cluster.triggerSavepoint(job, savepoints(), false, SavepointFormatType.CANONICAL));
    }

    /** Tasks start one after the other, also when the job is said to run. */
    private static String whenTasksRun(Supplier<CompletableFuture<String>> action) {
        for (int attempt = 0; ; attempt++) {
            try {
                return action.get()
                        .orTimeout(DEADLINE_NANOS, TimeUnit.NANOSECONDS)
                        .join();
            } catch (CompletionException e) {
                if (attempt == ATTEMPTS_MAX) {
                    throw e;
                }
                pause();
            }
        }
    }

    void cancel(JobID job) throws Exception {
        cluster.cancelJob(job).get();
        cluster.requestJobResult(job).get();
    }

    /** Takes a savepoint, commits what it contains, and stops the job. */
    void stop(JobID job) throws Exception {
        whenTasksRun(() -> cluster.stopWithSavepoint(job, savepoints(), false, SavepointFormatType.CANONICAL));
        cluster.requestJobResult(job).get();
    }

    private String savepoints() {
        return folder.resolve("savepoints").toUri().toString();
    }

    static void await(String what, BooleanSupplier condition) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as("waiting for " + what).isLessThan(DEADLINE_NANOS);
            pause();
        }
    }

    private static void pause() {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
    }

    /** Cancels the jobs that have not ended, as those of a test that fails. */
    @Override
    public void close() throws Exception {
        for (JobID job : jobs) {
            if (!status(job).isGloballyTerminalState()) {
                cancel(job);
            }
        }
    }
}
