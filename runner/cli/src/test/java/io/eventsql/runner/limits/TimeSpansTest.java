package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.limits.TimeSpans.Span;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TimeSpansTest {

    @Test
    void union_ofOverlappingAndNestedSpans_countsEachMomentOnce() {
        assertThat(spans(30, 40, 0, 10, 5, 20, 6, 7, 20, 22).micros()).isEqualTo(32);
        assertThat(spans().micros()).isZero();
    }

    @Test
    void intersection_isSymmetric() {
        TimeSpans a = spans(0, 10, 20, 30, 40, 50);
        TimeSpans b = spans(5, 25, 45, 60);

        assertThat(a.intersection(b).micros()).isEqualTo(15);
        assertThat(b.intersection(a).micros()).isEqualTo(15);
        assertThat(a.intersection(spans()).micros()).isZero();
    }

    @Test
    void overlaps_findsSpansAtBothEnds() {
        TimeSpans spans = spans(10, 20, 30, 40);

        assertThat(List.of(new Span(0, 10), new Span(20, 25), new Span(35, 36), new Span(0, 99)))
                .allMatch(spans::overlaps);
        assertThat(List.of(new Span(0, 9), new Span(21, 29), new Span(41, 99))).noneMatch(spans::overlaps);
    }

    private static TimeSpans spans(long... ends) {
        List<Span> spans = new ArrayList<>();
        for (int i = 0; i < ends.length; i += 2) {
            spans.add(new Span(ends[i], ends[i + 1]));
        }
        return TimeSpans.union(spans);
    }
}
