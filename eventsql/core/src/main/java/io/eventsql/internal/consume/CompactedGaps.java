package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.CompactedRanges;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.OffsetRange;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds out which offsets without an event compaction has left in fetched pages. A page without gaps costs nothing; the
 * ranges around one with gaps are read after it, and remembered for the next pages of the partition.
 *
 * <p>A page without any event is always compared with what is stored now: its segment may have expired, and then its range
 * lies below the log's start. A page with an event was read from segments that have not expired.
 */
final class CompactedGaps {
    /** Reads the ranges of further segments in advance. */
    private static final long AHEAD_OFFSETS = 10_000_000;

    private CompactedGaps() {}

    /** Returns the pages, those with gaps together with what compaction may have removed. */
    static List<FetchedPage> mark(
            Shard shard, Membership membership, List<Assignment> assignments, List<FetchedPage> pages)
            throws SQLException {
        if (!anyHasGaps(pages)) {
            return pages;
        }
        List<Integer> unknown = new ArrayList<>();
        List<FetchedPage> marked = new ArrayList<>(pages);
        for (int i = 0; i < pages.size(); i++) {
            FetchedPage page = pages.get(i);
            if (page.hasGaps()) {
                FetchedPage remembered = page.withCompacted(assignments.get(i).compacted());
                marked.set(i, remembered);
                if (page.events().isEmpty() || !remembered.hasOnlyCompactedGaps()) {
                    unknown.add(i);
                }
            }
        }
        if (unknown.isEmpty()) {
            return marked;
        }
        List<FetchedPage> ofUnknown = unknown.stream().map(pages::get).toList();
        List<CompactedRanges> found = read(
                shard,
                membership.incarnation(),
                membership.streamId(),
                unknown.stream().map(i -> assignments.get(i).partition()).toList(),
                ofUnknown);
        for (int i = 0; i < unknown.size(); i++) {
            int index = unknown.get(i);
            assignments.get(index).remember(found.get(i));
            marked.set(index, pages.get(index).withCompacted(found.get(i)));
        }
        return marked;
    }

    private static boolean anyHasGaps(List<FetchedPage> pages) {
        for (FetchedPage page : pages) {
            if (page.hasGaps()) {
                return true;
            }
        }
        return false;
    }

    /** Returns a page of one partition in the same way; nothing is remembered. */
    static FetchedPage mark(Shard shard, int streamId, int partition, FetchedPage page) throws SQLException {
        return page.hasGaps()
                ? page.withCompacted(read(shard, null, streamId, List.of(partition), List.of(page))
                        .getFirst())
                : page;
    }

    private static List<CompactedRanges> read(
            Shard shard, @Nullable String incarnation, int streamId, List<Integer> partitions, List<FetchedPage> pages)
            throws SQLException {
        List<OffsetRange> of = pages.stream()
                .map(page -> new OffsetRange(
                        page.firstOffset(), Math.max(page.nextOffset(), page.firstOffset() + AHEAD_OFFSETS)))
                .toList();
        return shard.require().call(c -> shard.tables().compaction().ranges(c, incarnation, streamId, partitions, of));
    }
}
