package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.NumberSet;
import java.util.SortedMap;
import java.util.SortedSet;

/**
 * What is needed to unite the counts of several members exactly, and to follow them second by second.
 *
 * @param numbers the numbers that were received; a copy
 * @param partitions the partitions they came from, as {@code shard/partition}; a copy
 * @param endToEndMicrosBySecond the encoded latencies of the events handled in each second since 1970; a copy
 */
record PhaseDetail(NumberSet numbers, SortedSet<String> partitions, SortedMap<Long, String> endToEndMicrosBySecond) {}
