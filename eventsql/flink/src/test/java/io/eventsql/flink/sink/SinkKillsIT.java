package io.eventsql.flink.sink;

import io.eventsql.flink.FlinkCluster;
import io.eventsql.flink.FlinkFixture;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.JobID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: from source to sink each event counts once, whatever fails. Method: a job counts events and writes each with its count,
 * while TaskManagers end, the database is killed, and connections of the sink are cut, at random times. At the end the sink's
 * stream must have what a query in SQL over the source's stream has.
 */
@Timeout(value = 2, unit = TimeUnit.HOURS)
class SinkKillsIT {
    private static final int KILLS = Integer.getInteger("eventsql.test.flinkKills", 2);
    private static final String SEED = "eventsql.test.seed";
    private static final int EVENTS_PER_KILL = 100;
    private static final Duration CHECKPOINTS = Duration.ofMillis(100);
    private static final int DELAY_MS_MAX = 400;

    @TempDir
    Path folder;

    @Test
    void taskManagersAndDatabaseAreKilled_eachEventIsStoredOnce() throws Exception {
        long seed = Long.getLong(SEED, System.nanoTime());
        System.out.println("SinkKillsIT: repeat with -D" + SEED + "=" + seed);
        Random random = new Random(seed);
        try (FlinkFixture fixture = new FlinkFixture();
                TestCluster cluster = new TestCluster(folder)) {
            CountingJob job = new CountingJob(fixture, "killed");
            int published = EVENTS_PER_KILL;
            job.publish(0, published);
            JobID id = cluster.submit(
                    2,
                    CHECKPOINTS,
                    null,
                    environment -> job.add(environment, null, job.sink().build()));
            for (int kill = 0; kill < KILLS; kill++) {
                int before = published - EVENTS_PER_KILL / 2;
                job.publish(published, published + EVENTS_PER_KILL);
                published += EVENTS_PER_KILL;
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(DELAY_MS_MAX)));
                if (kill % 2 == 0) {
                    FlinkCluster.replaceTaskManager();
                } else {
                    FlinkFixture.server().crash();
                    FlinkFixture.server().restart();
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(DELAY_MS_MAX)));
                fixture.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        + " WHERE application_name = 'eventsql-flink-sink'");
                TestCluster.await("progress after kill " + kill, () -> job.written() >= before);
            }
            int all = published;
            TestCluster.await("all events", () -> job.written() >= all);
            cluster.stop(id);
            job.assertEachEventOnce(all);
            System.out.println("MEASURED SinkKillsIT: " + KILLS + " kills, " + all + " events, 0 lost, 0 twice");
        }
    }
}
