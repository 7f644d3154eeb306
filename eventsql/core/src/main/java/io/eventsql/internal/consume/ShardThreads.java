package io.eventsql.internal.consume;

import io.eventsql.Settings;
import io.eventsql.internal.shard.Replica;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.wake.WakeUp;
import org.jspecify.annotations.Nullable;

/** The platform threads that consume from one shard for all members of this process, and their schedules. */
record ShardThreads(Fetchers fetchers, CommitThread commits, LeaseKeeper leases, HeartbeatSchedule heartbeatSchedule) {

    /** @param replica {@code null}: the shard has none */
    static ShardThreads start(
            Shard shard,
            @Nullable Replica replica,
            Settings settings,
            WakeUp wakeUp,
            Listeners listeners,
            ShardBarriers barriers) {
        HeartbeatSchedule heartbeats = new HeartbeatSchedule();
        Fetchers fetchers = Fetchers.start(shard, replica, settings, wakeUp, listeners);
        CommitThread commits = new CommitThread(shard);
        LeaseKeeper leases =
                new LeaseKeeper(shard, settings, heartbeats, fetchers, commits, wakeUp, listeners, barriers);
        commits.start();
        leases.start();
        wakeUp.register(shard, leases);
        return new ShardThreads(fetchers, commits, leases, heartbeats);
    }

    /** Ends the threads; also if the caller is interrupted while it waits for them. */
    void close(CloseDeadline deadline) throws InterruptedException {
        try {
            leases.close(deadline);
        } finally {
            try {
                fetchers.close(deadline);
            } finally {
                commits.close(deadline);
            }
        }
    }
}
