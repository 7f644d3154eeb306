package io.eventsql.internal.consume;

/** A member on one shard, and what commits its offsets and handles its partitions. */
record Participant(ShardMember member, OffsetCommitter committer, Dispatcher dispatcher) {}
