package io.eventsql.flink.sink;

import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.ExecutionOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.transformations.WithBoundedness;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds jobs that would never store anything, or may store events again, for lack of checkpoints. */
final class CheckpointCheck {
    private static final Logger LOG = LoggerFactory.getLogger(CheckpointCheck.class);

    private CheckpointCheck() {}

    /**
     * Warns if there are no checkpoints: a restarted job then computes everything again.
     *
     * @throws IllegalStateException if there are none, and the records never end
     */
    static void requireCheckpoints(DataStream<?> records, String sink) {
        StreamExecutionEnvironment environment = records.getExecutionEnvironment();
        RuntimeExecutionMode mode = environment.getConfiguration().get(ExecutionOptions.RUNTIME_MODE);
        boolean isUnbounded = isUnbounded(records);
        // In batch mode, which automatic mode chooses for records that end, the setting has no effect.
        boolean isBatch =
                mode == RuntimeExecutionMode.BATCH || (mode == RuntimeExecutionMode.AUTOMATIC && !isUnbounded);
        if (environment.getCheckpointConfig().isCheckpointingEnabled() && !isBatch) {
            return;
        }
        if (isUnbounded) {
            throw new IllegalStateException(
                    "Sink " + sink + " stores events when a checkpoint is complete, but the job makes"
                            + " none: set execution.checkpointing.interval, or delivery guarantee 'at-least-once'");
        }
        LOG.warn(
                "Sink {} has no checkpoints: if the job is restarted after a failure, it may store events again. For"
                        + " exactly once, run it in streaming mode with execution.checkpointing.interval",
                sink);
    }

    private static boolean isUnbounded(DataStream<?> records) {
        for (Transformation<?> each : records.getTransformation().getTransitivePredecessors()) {
            if (each instanceof WithBoundedness source && source.getBoundedness() == Boundedness.CONTINUOUS_UNBOUNDED) {
                return true;
            }
        }
        return false;
    }
}
