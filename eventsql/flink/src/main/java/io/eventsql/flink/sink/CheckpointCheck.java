package io.eventsql.flink.sink;

import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.transformations.WithBoundedness;

/** Finds jobs that would never store anything, for lack of checkpoints. */
final class CheckpointCheck {
    private CheckpointCheck() {}

    /** @throws IllegalStateException if the records never end, and there are no checkpoints */
    static void requireCheckpoints(DataStream<?> records, String sink) {
        boolean hasCheckpoints =
                records.getExecutionEnvironment().getCheckpointConfig().isCheckpointingEnabled();
        if (!hasCheckpoints && isUnbounded(records)) {
            throw new IllegalStateException(
                    "Sink " + sink + " stores events when a checkpoint is complete, but the job makes"
                            + " none: set execution.checkpointing.interval, or delivery guarantee 'at-least-once'");
        }
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
