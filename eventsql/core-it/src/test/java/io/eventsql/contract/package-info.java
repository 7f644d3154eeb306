/**
 * The library's contract, one class per step: what holds for any number of shards as long as nothing but handlers
 * fails, and for any storage. {@link io.eventsql.contract.OneShardIT} runs all of it, {@link io.eventsql.contract.ThreeShardsIT}
 * what depends on the number of shards, and {@link io.eventsql.contract.BlocksIT} what depends on the storage; to run one
 * step, use {@code -Dit.test='OneShardIT$WakeUp'}; to run one test, {@code -Dit.test='OneShardIT*#read_atTheHead*'}.
 */
@NullMarked
package io.eventsql.contract;

import org.jspecify.annotations.NullMarked;
