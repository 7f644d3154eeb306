/**
 * The library's contract, a class for each step: what holds for any number of shards, with nothing going wrong but
 * handlers. {@link io.eventsql.contract.OneShardIT} and {@link io.eventsql.contract.ThreeShardsIT} run all of it; one
 * step alone is {@code -Dit.test='OneShardIT$WakeUp'}, one test {@code -Dit.test='OneShardIT*#read_atTheHead*'}.
 */
@NullMarked
package io.eventsql.contract;

import org.jspecify.annotations.NullMarked;
