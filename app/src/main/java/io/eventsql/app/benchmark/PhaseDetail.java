package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.NumberSet;
import java.util.SortedMap;
import java.util.SortedSet;

/**
 * The detail needed to merge the counts of several members exactly, and to follow them second by second.
 *
 * @param numbers a copy of the received numbers
 * @param partitions a copy of the partitions of the events, as {@code shard/partition}
 * @param endToEndMicrosBySecond a copy of the encoded latencies of the events handled in each epoch second
 */
record PhaseDetail(NumberSet numbers, SortedSet<String> partitions, SortedMap<Long, String> endToEndMicrosBySecond) {}
