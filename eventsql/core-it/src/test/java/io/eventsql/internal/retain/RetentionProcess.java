package io.eventsql.internal.retain;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Settings;
import io.eventsql.fixture.Pools;
import io.eventsql.internal.shard.Shards;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The main class of a process that takes steps of retention, one pass after the other, until it is killed. Prints {@code READY} before
 * the first one.
 */
public final class RetentionProcess {
    /** After a step that had nothing to do. Leaves processor time to the publishers of the test. */
    private static final int PASS_PAUSE_MS = 10;

    private RetentionProcess() {}

    /** Arguments: JDBC URL, user, password. */
    public static void main(String[] args) throws InterruptedException {
        try (HikariDataSource pool =
                Pools.pool(args[0], args[1], args[2], config -> config.setConnectionTimeout(30_000))) {
            RetentionKeeper keeper = new RetentionKeeper(
                    Shards.open(List.of(pool), Settings.defaults()).get(0), Duration.ZERO);
            System.out.println("READY");
            while (true) {
                if (!keeper.runStep()) {
                    TimeUnit.MILLISECONDS.sleep(PASS_PAUSE_MS);
                }
            }
        }
    }
}
