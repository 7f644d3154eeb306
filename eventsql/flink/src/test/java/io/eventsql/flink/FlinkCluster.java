package io.eventsql.flink;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.flink.api.dag.Pipeline;
import org.apache.flink.client.deployment.executors.PipelineExecutorUtils;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.configuration.HeartbeatManagerOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.PipelineExecutor;
import org.apache.flink.core.execution.PipelineExecutorFactory;
import org.apache.flink.core.execution.PipelineExecutorServiceLoader;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.MiniClusterJobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.FileUtils;

/**
 * A mini cluster of two TaskManagers that runs the jobs of all tests of this JVM, because each one that is started unpacks its
 * remote procedure calls and loads their classes anew, which takes longer than most jobs.
 */
public final class FlinkCluster {
    private static final String TARGET = "shared-mini-cluster";
    private static final int TASK_MANAGERS = 2;
    private static final int SLOTS_OF_EACH = 3;
    private static final MiniCluster CLUSTER = start();

    private static int startedTaskManagers = TASK_MANAGERS;

    private FlinkCluster() {}

    private static MiniCluster start() {
        try {
            Path checkpoints = Files.createTempDirectory("flink-checkpoints");
            Configuration configuration = new Configuration();
            configuration.set(
                    CheckpointingOptions.CHECKPOINTS_DIRECTORY,
                    checkpoints.toUri().toString());
            configuration.set(HeartbeatManagerOptions.HEARTBEAT_INTERVAL, Duration.ofMillis(500));
            MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
                    .setConfiguration(configuration)
                    .setNumTaskManagers(TASK_MANAGERS)
                    .setNumSlotsPerTaskManager(SLOTS_OF_EACH)
                    .withRandomPorts()
                    .build());
            cluster.start();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(cluster, checkpoints)));
            return cluster;
        } catch (Exception e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static void stop(MiniCluster cluster, Path checkpoints) {
        cluster.closeAsync().orTimeout(10, TimeUnit.SECONDS).join();
        FileUtils.deleteDirectoryQuietly(checkpoints.toFile());
    }

    /** Returns the cluster, which stops with this JVM. */
    public static MiniCluster get() {
        return CLUSTER;
    }

    /** Returns an environment that runs its jobs on the cluster. */
    static StreamExecutionEnvironment environment(Configuration configuration) {
        configuration.set(DeploymentOptions.TARGET, TARGET);
        configuration.set(DeploymentOptions.ATTACHED, true);
        return new StreamExecutionEnvironment(new SharedExecutor(), configuration, FlinkCluster.class.getClassLoader());
    }

    /** Ends the TaskManager that was started first, and starts another one. */
    public static synchronized void replaceTaskManager() throws Exception {
        CLUSTER.terminateTaskManager(startedTaskManagers - TASK_MANAGERS).get();
        CLUSTER.startTaskManager();
        startedTaskManagers++;
    }

    private static final class SharedExecutor
            implements PipelineExecutorServiceLoader, PipelineExecutorFactory, PipelineExecutor {
        @Override
        public PipelineExecutorFactory getExecutorFactory(Configuration configuration) {
            return this;
        }

        @Override
        public Stream<String> getExecutorNames() {
            return Stream.of(TARGET);
        }

        @Override
        public String getName() {
            return TARGET;
        }

        @Override
        public boolean isCompatibleWith(Configuration configuration) {
            return true;
        }

        @Override
        public PipelineExecutor getExecutor(Configuration configuration) {
            return this;
        }

        @Override
        public CompletableFuture<JobClient> execute(
                Pipeline pipeline, Configuration configuration, ClassLoader userClassLoader) throws Exception {
            return CLUSTER.submitJob(PipelineExecutorUtils.getStreamGraph(pipeline, configuration))
                    .thenApply(submitted -> new MiniClusterJobClient(
                            submitted.getJobID(),
                            CLUSTER,
                            userClassLoader,
                            MiniClusterJobClient.JobFinalizationBehavior.NOTHING));
        }
    }
}
