package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.NumberSet;
import java.util.SortedSet;

/**
 * What is needed to unite the counts of several members exactly.
 *
 * @param numbers the numbers that were received; a copy
 * @param partitions the partitions they came from, as {@code shard/partition}; a copy
 */
record Detail(NumberSet numbers, SortedSet<String> partitions) {}
