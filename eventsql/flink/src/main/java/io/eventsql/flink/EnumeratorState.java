package io.eventsql.flink;

import io.eventsql.reader.StreamPartition;
import java.util.List;
import java.util.Set;

/**
 * What the enumerator of a source has done.
 *
 * @param isInitialised whether the partitions that exist at the start of the job were found; those found later are read from
 *     their first event
 * @param known all partitions found so far
 * @param unassigned the splits that no reader has yet
 */
public record EnumeratorState(boolean isInitialised, Set<StreamPartition> known, List<PartitionSplit> unassigned) {
    /** Copies the collections. */
    public EnumeratorState {
        known = Set.copyOf(known);
        unassigned = List.copyOf(unassigned);
    }
}
