package io.eventsql.internal.shard;

import io.eventsql.internal.shard.Replica.PageOf;
import io.eventsql.internal.sql.FetchedPage;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

/**
 * The heads of a shard's partitions, as far as the primary has shown them. A standby shows a commit that still waits for
 * synchronous replicas on the primary: it is not acknowledged, and may be lost with the standby. So events of a replica count
 * only below the primary's head. That is looked up only for pages which go beyond the one that is known. Thread-safe.
 */
final class VisibleHeads {
    private final Shard shard;
    private volatile Known known = new Known("", Map.of());

    VisibleHeads(Shard shard) {
        this.shard = shard;
    }

    /** Heads of one incarnation, which only grow. */
    private record Known(String incarnation, Map<PageOf, Long> heads) {
        boolean isBelow(PageOf partition, long offset) {
            return heads.getOrDefault(partition, 0L) < offset;
        }
    }

    /**
     * Returns the part of each page that the primary shows, too.
     *
     * @param partitions those of the pages
     * @param pages pages without gaps
     */
    List<FetchedPage> visible(String incarnation, List<PageOf> partitions, List<FetchedPage> pages)
            throws SQLException {
        Known current = known;
        if (!current.incarnation().equals(incarnation)) {
            current = new Known(incarnation, new ConcurrentHashMap<>());
            known = current;
        }
        Known heads = current;
        int[] unknown = IntStream.range(0, pages.size())
                .filter(i -> heads.isBelow(partitions.get(i), pages.get(i).nextOffset()))
                .map(i -> partitions.get(i).streamId())
                .distinct()
                .toArray();
        if (unknown.length > 0) {
            shard.require()
                    .call(c -> shard.tables().partitions().heads(c, incarnation, unknown))
                    .forEach(head ->
                            heads.heads().merge(new PageOf(head.streamId(), head.partition()), head.head(), Math::max));
        }
        List<FetchedPage> visible = new ArrayList<>();
        for (int i = 0; i < pages.size(); i++) {
            visible.add(pages.get(i).before(heads.heads().getOrDefault(partitions.get(i), 0L)));
        }
        return visible;
    }
}
