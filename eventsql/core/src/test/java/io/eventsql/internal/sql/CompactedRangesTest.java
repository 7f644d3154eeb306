package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class CompactedRangesTest {
    private final CompactedRanges ranges =
            new CompactedRanges(List.of(new OffsetRange(10, 20), new OffsetRange(20, 30), new OffsetRange(40, 50)));

    @Test
    void contains_acrossAdjacentRanges() {
        assertThat(ranges.contains(10, 30)).isTrue();
        assertThat(ranges.contains(15, 25)).isTrue();
        assertThat(ranges.contains(9, 11)).isFalse();
        assertThat(ranges.contains(25, 45)).isFalse();
        assertThat(CompactedRanges.NONE.contains(0, 1)).isFalse();
    }

    @Test
    void withinAndOutside_splitARange() {
        assertThat(ranges.within(5, 45)).containsExactly(new OffsetRange(10, 30), new OffsetRange(40, 45));
        assertThat(ranges.outside(5, 45)).containsExactly(new OffsetRange(5, 10), new OffsetRange(30, 40));
        assertThat(ranges.within(30, 40)).isEmpty();
        assertThat(ranges.outside(12, 18)).isEmpty();
        assertThat(ranges.outside(60, 70)).containsExactly(new OffsetRange(60, 70));
    }
}
