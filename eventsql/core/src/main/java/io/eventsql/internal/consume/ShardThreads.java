package io.eventsql.internal.consume;

import io.eventsql.Settings;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.wake.WakeUp;

/** The platform threads that consume from one shard for all members of this process, and their schedules. */
record ShardThreads(
        Fetcher fetcher,
        CommitThread commits,
        LeaseKeeper leases,
        FetchSchedule fetchSchedule,
        HeartbeatSchedule heartbeatSchedule) {

    static ShardThreads start(Shard shard, Settings settings, WakeUp wakeUp, Listeners listeners) {
        FetchSchedule fetches = new FetchSchedule(settings.pollInterval());
        HeartbeatSchedule heartbeats = new HeartbeatSchedule();
        Fetcher fetcher = new Fetcher(shard, fetches, listeners);
        CommitThread commits = new CommitThread(shard);
        LeaseKeeper leases = new LeaseKeeper(shard, settings, heartbeats, fetcher, fetches, commits, wakeUp, listeners);
        fetcher.start();
        commits.start();
        leases.start();
        wakeUp.register(shard, fetcher);
        wakeUp.register(shard, leases);
        return new ShardThreads(fetcher, commits, leases, fetches, heartbeats);
    }

    /** Ends the threads; also if the caller is interrupted while it waits for them. */
    void close(CloseDeadline deadline) throws InterruptedException {
        try {
            leases.close(deadline);
        } finally {
            try {
                fetcher.close(deadline);
            } finally {
                commits.close(deadline);
            }
        }
    }
}
