package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;

/** The threads that consume from one shard for all members of this process. */
record ShardThreads(Shard shard, Fetcher fetcher, OffsetCommitter committer, LeaseKeeper keeper) {}
