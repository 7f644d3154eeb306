package io.eventsql.runner;

import io.eventsql.runner.spec.RunSpec.SearchSpec;
import java.util.OptionalLong;
import java.util.function.LongPredicate;

/**
 * Searches for the highest sustainable rate. Doubles the rate from the lowest as long as it holds, then bisects
 * geometrically between the highest that held and the lowest that did not.
 */
final class RateSearch {
    private final SearchSpec spec;

    RateSearch(SearchSpec spec) {
        this.spec = spec;
    }

    /**
     * Searches.
     *
     * @param holds tests a rate in events/s
     * @return the highest rate that held; empty if not even the lowest did
     */
    OptionalLong findBest(LongPredicate holds) {
        long rate = spec.fromRate();
        long held = 0;
        while (holds.test(rate)) {
            held = rate;
            if (rate == spec.toRate()) {
                return OptionalLong.of(held);
            }
            rate = Math.min(2 * rate, spec.toRate());
        }
        if (held == 0) {
            return OptionalLong.empty();
        }
        long tooMuch = rate;
        while (tooMuch - held > 1 && (double) tooMuch / held > 1 + spec.precision()) {
            long middle = Math.clamp(Math.round(Math.sqrt((double) held * tooMuch)), held + 1, tooMuch - 1);
            if (holds.test(middle)) {
                held = middle;
            } else {
                tooMuch = middle;
            }
        }
        return OptionalLong.of(held);
    }
}
