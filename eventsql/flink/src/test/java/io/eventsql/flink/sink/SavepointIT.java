package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.flink.FlinkFixture;
import java.nio.file.Path;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: what a savepoint contains of a sink is stored once, whatever the parallelism is later. Method: each job only makes a
 * savepoint and is canceled, so nothing of it is stored until the next one begins, with another parallelism.
 */
@Timeout(180)
class SavepointIT {
    private static final int EVENTS = 100;

    @TempDir
    Path folder;

    @Test
    void rescaled_storesEachEventOnce_andAnOlderSavepointRepeatsOnlyWhatCameAfterIt() throws Exception {
        try (FlinkFixture fixture = new FlinkFixture();
                TestCluster cluster = new TestCluster(folder)) {
            CountingJob job = new CountingJob(fixture, "rescaled");
            String first = "";
            String savepoint = null;
            int published = 0;
            for (int parallelism : List.of(1, 3, 2)) {
                job.publish(published, published + EVENTS);
                int counted = CountingJob.COUNTED.get() + EVENTS;
                JobID id = cluster.submit(
                        parallelism,
                        null,
                        savepoint,
                        environment -> job.add(environment, null, job.sink().build()));
                TestCluster.await("events to be counted", () -> CountingJob.COUNTED.get() >= counted);
                savepoint = cluster.savepoint(id);
                cluster.cancel(id);
                assertThat(job.written()).isEqualTo(published);
                first = published == 0 ? savepoint : first;
                published += EVENTS;
            }
            int all = published;
            finish(cluster, job, savepoint, 0, all);
            job.assertEachEventOnce(all);

            // What the first savepoint contains is known to be stored; what came after it is computed and stored again.
            finish(cluster, job, first, 2 * EVENTS, all + 2 * EVENTS);
        }
    }

    /** Restores a savepoint, computes what came after it, and stops with all of it stored. */
    private static void finish(TestCluster cluster, CountingJob job, String savepoint, int eventsAfter, int written)
            throws Exception {
        int counted = CountingJob.COUNTED.get() + eventsAfter;
        JobID id = cluster.submit(
                2,
                null,
                savepoint,
                environment -> job.add(environment, null, job.sink().build()));
        TestCluster.await("events to be counted", () -> CountingJob.COUNTED.get() >= counted);
        cluster.stop(id);
        assertThat(job.written()).isEqualTo(written);
    }
}
