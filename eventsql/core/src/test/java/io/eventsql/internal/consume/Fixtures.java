package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.LeaseTable.TakenPartition;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/** Members, assignments and events without a database. */
final class Fixtures {
    static final int PAGE_EVENTS = 4;
    private static final ConsumerSpec SPEC =
            ConsumerSpec.of("orders", "billing").withPageEvents(PAGE_EVENTS).withConcurrency(2);

    private Fixtures() {}

    static Membership membership() {
        return new Membership(UUID.randomUUID(), "host/1/1", 0, "incarnation", 7, 3, SPEC, StreamSpec.of("orders"));
    }

    static long leaseEnd() {
        return System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    }

    static TakenPartition taken(int partition, long nextOffset) {
        return new TakenPartition(partition, 1, nextOffset, 0);
    }

    static Assignment assignment(long nextOffset) {
        return new Assignment(membership(), taken(0, nextOffset), Set.of(), leaseEnd(), budget());
    }

    static FetchBudget budget() {
        return new FetchBudget(SPEC);
    }

    static ShardMember member(Listeners listeners, int... partitions) {
        ShardMember member = new ShardMember(membership(), budget(), listeners);
        for (int partition : partitions) {
            member.add(List.of(taken(partition, 0)), Map.of(), leaseEnd());
        }
        return member;
    }

    static StoredEvent event(long offset, @Nullable String key) {
        return new StoredEvent(new EventPosition("orders", 0, 0, offset), key, new byte[] {1}, Map.of(), Instant.EPOCH);
    }

    static FetchedPage page(long first, int events) {
        return page(
                first, first + events, LongStream.range(first, first + events).toArray());
    }

    /** Returns a page of a range, with events at these offsets. */
    static FetchedPage page(long first, long next, long... offsets) {
        List<StoredEvent> events =
                LongStream.of(offsets).mapToObj(offset -> event(offset, null)).toList();
        return new FetchedPage(first, next, offsets.length < PAGE_EVENTS, events, events.size(), Map.of());
    }
}
