package io.eventsql.runner.limits;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** A set of moments: disjoint spans of time in ascending order. Immutable. */
final class TimeSpans {
    private final List<Span> spans;

    private TimeSpans(List<Span> spans) {
        this.spans = spans;
    }

    /**
     * A span of time.
     *
     * @param from the start, as epoch microseconds
     * @param to the end
     */
    record Span(long from, long to) {
        long micros() {
            return to - from;
        }
    }

    /** Returns the union of spans in any order. */
    static TimeSpans union(List<Span> spans) {
        List<Span> disjoint = new ArrayList<>();
        for (Span span :
                spans.stream().sorted(Comparator.comparingLong(Span::from)).toList()) {
            Span last = disjoint.isEmpty() ? null : disjoint.getLast();
            if (last == null || span.from > last.to) {
                disjoint.add(span);
            } else if (span.to > last.to) {
                disjoint.set(disjoint.size() - 1, new Span(last.from, span.to));
            }
        }
        return new TimeSpans(disjoint);
    }

    /** Returns the moments that are in both. */
    TimeSpans intersection(TimeSpans other) {
        List<Span> common = new ArrayList<>();
        for (int mine = 0, theirs = 0; mine < spans.size() && theirs < other.spans.size(); ) {
            Span a = spans.get(mine);
            Span b = other.spans.get(theirs);
            if (Math.max(a.from, b.from) <= Math.min(a.to, b.to)) {
                common.add(new Span(Math.max(a.from, b.from), Math.min(a.to, b.to)));
            }
            if (a.to < b.to) {
                mine++;
            } else {
                theirs++;
            }
        }
        return new TimeSpans(common);
    }

    /** Returns whether a span has a moment in common with these. */
    boolean overlaps(Span span) {
        int low = 0;
        int high = spans.size();
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (spans.get(middle).to < span.from) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low < spans.size() && spans.get(low).from <= span.to;
    }

    /** Returns the total duration. */
    long micros() {
        return spans.stream().mapToLong(Span::micros).sum();
    }
}
